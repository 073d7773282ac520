#!/bin/bash
# Run a program as an unprivileged user under a systemd user manager of its own, in namespaces.
#
#   user_manager.sh FOLDER SOURCE PYTHON_PREFIX PROGRAM...
#
# FOLDER is for the manager and the user's home; SOURCE and PYTHON_PREFIX are made readable. Nothing
# outside the namespaces changes, but for a cgroup that is removed at the end. Exit code 77: it cannot
# be done here.
set -u
unprivileged=65534

if [ "${1:-}" != inside ]; then
    [ "$(id -u)" = 0 ] && [ -x /lib/systemd/systemd ] || exit 77
    root=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/self/mounts)
    above=$(awk -F: '$1 == 0 {print $3}' /proc/self/cgroup)
    group=$root$above/memoryd-test-$$
    mkdir "$group" 2> /dev/null && echo $$ > "$group/cgroup.procs" || exit 77
    unshare -mpiunC --fork --kill-child "$0" inside "$@"
    code=$?
    echo $$ > "$root$above/cgroup.procs"
    find "$group" -depth -type d -exec rmdir {} \; 2> /dev/null
    exit $code
fi

shift
folder=$1 source=$2 prefix=$3
shift 3
mount --make-rprivate / && mount -t proc proc /proc || exit 77
umount -l /sys/fs/cgroup 2> /dev/null
mount -t cgroup2 none /sys/fs/cgroup && mount -t tmpfs none /run/systemd || exit 77
# systemd starts services in unit-root, and believes itself booted where "system" is.
mkdir -p /run/systemd/unit-root /run/systemd/system /sys/fs/cgroup/{user,test}

# A folder above what must be read may be private: an empty one stands in for it.
mkdir -p "$folder"/{a,b}
mount --bind "$source" "$folder/a" && mount --bind "$prefix" "$folder/b" || exit 77
for kept in "$source" "$prefix"; do
    above=
    IFS=/ read -ra names <<< "${kept#/}"
    for name in "${names[@]}"; do
        above=$above/$name
        if [ "$above" != "$kept" ] && ! [ $((0$(stat -c %a "$above") & 1)) = 1 ]; then
            mount -t tmpfs -o mode=755 none "$above"
            break
        fi
    done
done
for pair in "a $source" "b $prefix"; do
    mkdir -p "${pair#* }" && mount --bind "$folder/${pair%% *}" "${pair#* }" || exit 77
done

mkdir -p "$folder"/{run,person/.config/systemd/user}
chmod 700 "$folder/run"
chown -R $unprivileged "$folder/run" "$folder/person" /sys/fs/cgroup/user
echo $$ > /sys/fs/cgroup/test/cgroup.procs
export HOME=$folder/person XDG_RUNTIME_DIR=$folder/run
export SYSTEMD_UNIT_PATH=$HOME/.config/systemd/user:/usr/lib/systemd/user
as_user=(setpriv --reuid $unprivileged --regid $unprivileged --clear-groups)
(
    echo $BASHPID > /sys/fs/cgroup/user/cgroup.procs
    exec "${as_user[@]}" /lib/systemd/systemd --user --log-target=console > "$folder/manager.log" 2>&1
) &
for _ in {1..100}; do
    [ -S "$folder/run/systemd/private" ] && break
    kill -0 $! 2> /dev/null || exit 77
    sleep 0.05
done
[ -S "$folder/run/systemd/private" ] || exit 77
"${as_user[@]}" "$@"
