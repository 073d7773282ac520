"""The text of every statement on the archive that changes no job; each says what guards it."""

from __future__ import annotations

#: Writes down a session that was found. What an agent told of itself (cwd) stands.
SAW = """
insert into rollout (agent, session, transcript, cwd, last_cutoff, seen_at, fingerprint, size,
    at_most, active_at, project, kind, found_at)
values (:agent, :session, :transcript, :cwd, 0, 0, :fingerprint, :size, :at_most, :active_at,
    :project, :kind, :now)
on conflict (agent, session) do update set transcript = excluded.transcript,
    cwd = case when rollout.cwd = '' then excluded.cwd else rollout.cwd end,
    fingerprint = excluded.fingerprint, size = excluded.size, at_most = excluded.at_most,
    active_at = excluded.active_at, project = excluded.project, kind = excluded.kind,
    found_at = excluded.found_at
"""

#: Guard: no directory of it is known.
PLACE = """
update rollout set cwd = :cwd where agent = :agent and session = :session and cwd = ''
"""

#: The key of the job that a backfill of a session was made with.
_BACKFILL_KEY = "'backfill:' || r.agent || '/' || r.session || '#' || r.made_fingerprint"

#: Sessions that nobody told of, from before the home was made.
ARCHIVED = f"""
select r.agent, r.session, r.transcript, r.cwd, r.project, r.fingerprint, r.size, r.at_most,
    r.active_at, r.excluded, r.made_fingerprint, r.mined_fingerprint,
    j.id, j.status, coalesce(j.error_code, j.outcome_code)
from rollout r left join job j on j.idempotency_key = {_BACKFILL_KEY}
where r.kind = 'root' and r.seen_at = 0 and r.active_at < :made
"""

#: Of these, what is there and no job was made for as it is now.
UNMADE = """
    and r.fingerprint is not null and r.excluded is null
    and (r.made_fingerprint is null or r.made_fingerprint <> r.fingerprint)
    and (j.status is null or j.status not in ('pending', 'running'))
"""

#: Sessions that the sweep looks at: told of or fresh, and perhaps longer than what a finalize read.
UNREAD_ROLLOUTS = """
select agent, session, transcript, cwd, cast(last_cutoff as bigint), excluded,
    cast(throttled as bigint), cast(extracts as bigint), seen_at
from rollout
where excluded is null and transcript <> '' and (seen_at > 0
    or (active_at >= :made and kind = 'root'))
    and (fingerprint is null or at_most > cast(last_cutoff as bigint))
order by seen_at, agent, session
"""

#: Of the same those that became shorter than that, since no finalize was made for them as they are.
REWRITTEN_ROLLOUTS = """
select agent, session, transcript, cwd, cast(last_cutoff as bigint), excluded,
    cast(throttled as bigint), cast(extracts as bigint), seen_at
from rollout
where excluded is null and seen_at > 0 and at_most < cast(last_cutoff as bigint)
    and fingerprint is not null and (made_fingerprint is null or made_fingerprint <> fingerprint)
order by seen_at, agent, session
"""

#: A finalize is made for a session as it is.
MADE = """
update rollout set made_fingerprint = fingerprint where agent = :agent and session = :session
"""

#: The same without a job; guard: it was mined before, and is as it was looked at.
STILL_MINED = """
update rollout set made_fingerprint = fingerprint, mined_fingerprint = fingerprint
where agent = :agent and session = :session and fingerprint = :fingerprint
    and mined_fingerprint is not null
"""

#: Has what was set aside made again; guard: it was not mined, and no job of it is open.
TAKE_BACK = """
update rollout set made_fingerprint = mined_fingerprint
where made_fingerprint is not null
    and (mined_fingerprint is null or mined_fingerprint <> made_fingerprint)
    and not exists (select 1 from job where job.agent = rollout.agent
        and job.session = rollout.session and job.kind = 'backfill'
        and job.status in ('pending', 'running'))
"""

#: How many sessions of each agent were told of since then, and by whom.
TOLD = """
select agent, sum(case when hook_end_at > :since then 1 else 0 end),
    sum(case when sweep_at > :since then 1 else 0 end),
    sum(case when hook_at > :since then 1 else 0 end)
from rollout where hook_at > :since or sweep_at > :since group by agent order by agent
"""

#: What a person had forgotten. Their agents may go on with them.
FORGOTTEN = """
select agent, session, transcript, made_fingerprint from rollout
where excluded = 'session.forgotten' and (:agent is null or agent = :agent) order by agent, session
"""

#: Their digests were read; guard: it is forgotten.
LEARNED = """
update rollout set made_fingerprint = :looks,
    transcript = case when transcript = '' then :transcript else transcript end
where agent = :agent and session = :session and excluded = 'session.forgotten'
"""

#: Sessions of which something was read, whoever told of them, whose transcripts are there.
READ = """
select r.agent, r.session, r.transcript, r.cwd, cast(r.last_cutoff as bigint), r.at_most,
    cast(coalesce(c.seq, 0) as bigint),
    coalesce(r.mined_fingerprint = r.fingerprint, 0)
from rollout r left join cursor c on c.agent = r.agent and c.session = r.session
where r.excluded is null and r.kind = 'root' and r.transcript <> '' and r.fingerprint is not null
    and (r.mined_fingerprint is not null or r.last_cutoff > 0)
order by r.active_at, r.agent, r.session
"""
