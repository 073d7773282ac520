"""The tables of the session history and the statements that change them, by name.

A message stands under its session once: ``message_id`` is the agent's own id, or else a sha256 of
``base`` (role, time and text) and its ``ordinal`` among equals. ``reading`` counts how often a
transcript had to be read again from its beginning; a row that carries the session's present one was
met in it, so that equal messages without ids can be told apart without holding them in memory.
"""

from __future__ import annotations

_FIRST = (
    """
    create table session (
        id integer primary key,
        agent text not null,
        session text not null,
        kind text not null check (kind in ('root', 'child', 'internal')),
        parent text not null,
        forked_from text not null,
        transcript text not null,
        position integer not null,
        reading integer not null,
        head text not null,
        tail text not null,
        last_seq integer not null,
        bad_lines integer not null,
        skipped text not null,
        state text not null,
        last_active_ms integer,
        ingested_ms integer not null,
        unique (agent, session)
    )
    """,
    """
    create table message (
        id integer primary key,
        session_id integer not null references session (id) on delete cascade,
        seq integer not null,
        message_id text not null,
        part integer not null,
        parts integer not null,
        base blob,
        ordinal integer,
        reading integer not null,
        role text not null check (role in ('user', 'assistant')),
        text text not null,
        at_ms integer,
        cwd text not null,
        project text not null,
        line_end integer not null,
        state text not null default 'live' check (state in ('live', 'rolled_back'))
    )
    """,
    "create unique index message_seq on message (session_id, seq)",
    "create unique index message_known on message (message_id, session_id)",
    """
    create index message_equals on message (session_id, base, reading, ordinal)
    where base is not null
    """,
    """
    create index message_turn on message (session_id, seq)
    where role = 'user' and part = 1 and state = 'live'
    """,
)

#: ``saved`` says after which message an agent itself saved memory; ``call`` is a digest of the tool
#: call's id. ``citation`` waits until what it names was credited.
_SECOND = (
    """
    create table saved (
        session_id integer not null references session (id) on delete cascade,
        call blob not null,
        seq integer not null,
        line_end integer not null,
        primary key (session_id, call)
    ) without rowid
    """,
    """
    create table citation (
        id integer primary key autoincrement,
        session_id integer not null references session (id) on delete cascade,
        notes text not null,
        at_ms integer
    )
    """,
    "create index citation_session on citation (session_id)",
)

#: ``said`` is a digest of the words of a message that are kept no longer (``stripping.py``): its
#: text and directory are empty then. ``forgotten`` says that no words of the session may ever be
#: kept; ``copied`` which messages of other sessions it repeats, ``place`` in which directories
#: words of it were said that are kept.
_THIRD = (
    "alter table session add column version text not null default ''",
    "alter table session add column tools text not null default '{}'",
    "alter table session add column forgotten integer not null default 0",
    "alter table message add column said blob",
    "create index message_kept on message (at_ms, session_id, seq) where said is null",
    """
    create table place (
        session_id integer not null references session (id) on delete cascade,
        cwd text not null,
        primary key (session_id, cwd)
    ) without rowid
    """,
    "insert into place select distinct session_id, cwd from message",
    """
    create table copied (
        session_id integer not null references session (id) on delete cascade,
        message_id integer not null references message (id) on delete cascade,
        primary key (session_id, message_id)
    ) without rowid
    """,
    "create index copied_message on copied (message_id)",
)

#: Full text (``sessions/index.py``). Whoever adds, changes or deletes a message need not think of
#: it: the triggers note what is not indexed yet, and keep what a row said that is indexed until it
#: was taken out again.
_FOURTH = (
    "create table unindexed (message_id integer primary key)",
    """
    create table indexed (
        place integer primary key,
        message_id integer not null unique,
        scope integer not null
    )
    """,
    """
    create table scope (
        project text not null,
        number integer not null,
        primary key (project, number)
    ) without rowid
    """,
    """
    create table departed (
        place integer primary key,
        scope integer not null,
        session_id integer not null,
        agent text not null,
        text text not null
    )
    """,
    "create table text_index (version integer not null, purge integer not null)",
    "insert into text_index values (0, 0)",
    "insert into unindexed select id from message where text <> ''",
    """
    create trigger message_said after insert on message when new.text <> '' begin
        insert or ignore into unindexed values (new.id);
    end
    """,
    """
    create trigger message_gone after delete on message begin
        delete from unindexed where message_id = old.id;
        insert into departed
        select place, scope, old.session_id,
               coalesce((select agent from session where id = old.session_id), ''), old.text
        from indexed where message_id = old.id;
        delete from indexed where message_id = old.id;
    end
    """,
    # While it is still known which agent's they are: a cascade comes after.
    """
    create trigger session_gone before delete on session begin
        delete from message where session_id = old.id;
    end
    """,
    """
    create trigger message_reworded after update of text on message when old.text <> new.text begin
        delete from unindexed where message_id = old.id;
        insert into departed
        select place, scope, old.session_id,
               coalesce((select agent from session where id = old.session_id), ''), old.text
        from indexed where message_id = old.id;
        delete from indexed where message_id = old.id;
        insert into unindexed select new.id where new.text <> '';
    end
    """,
    # What is indexed under the number of one project is found under another's name from now on.
    """
    create trigger message_moved after update of project on message
    when old.project <> new.project begin
        insert or ignore into scope
        select new.project, number from scope where project = old.project;
    end
    """,
)

#: The statements of each step to the present tables, applied in order; never changed once released.
MIGRATIONS = (_FIRST, _SECOND, _THIRD, _FOURTH)
#: ``pragma user_version`` of a database these statements fit.
SCHEMA_VERSION = len(MIGRATIONS)

#: The session's row as ingestion finds it.
PROGRESS = """
    select id, position, reading, head, tail, state, bad_lines, skipped, last_seq, tools, forgotten
    from session where agent = ? and session = ?
"""

BEGIN_SESSION = """
    insert into session (agent, session, kind, parent, forked_from, transcript, position, reading,
                         head, tail, last_seq, bad_lines, skipped, state, ingested_ms)
    values (?, ?, 'root', '', '', '', 0, 1, '', '', 0, 0, '{}', '', 0)
"""

#: Moves the position; the guard (position and reading as they were) was checked in the transaction.
MOVE = """
    update session set kind = ?, parent = ?, forked_from = ?, transcript = ?, position = ?,
        reading = ?, head = ?, tail = ?, last_seq = ?, bad_lines = ?, skipped = ?,
        version = ?, tools = ?, state = ?,
        last_active_ms = coalesce(max(last_active_ms, ?), last_active_ms, ?), ingested_ms = ?
    where id = ?
"""

#: Where an id stands, in this session or in others.
KNOWN = "select session_id, seq, parts, reading, role from message where message_id = ?"

#: An equal message without an id that this reading has not met yet, the first one first.
EQUAL = """
    select seq, parts, reading from message
    where session_id = ? and base = ? and reading < ? order by reading, ordinal limit 1
"""

#: The highest ordinal among equals once all of them were met.
LAST_EQUAL = """
    select ordinal from message where session_id = ? and base = ? and reading = ?
    order by ordinal desc limit 1
"""

#: The message was met again: it is said now, whatever a roll-back before this reading made of it.
MEET = """
    update message set reading = ?, state = 'live', line_end = ?
    where session_id = ? and seq between ? and ?
"""

#: What was kept of a message, its parts in order.
SAID = """
    select text, state, line_end from message where session_id = ? and seq between ? and ?
    order by seq
"""

#: Takes away a message that is about to be kept in its newer words.
TAKE_AWAY = "delete from message where session_id = ? and seq between ? and ?"

#: Whether a message says the same (text, and the digest that stands for it once it is stripped).
_SAME_WORDS = """
    (message.said is null and message.text = ? or message.said is not null and message.said = ?)
"""

#: The same words under the same id in another session of the agent.
COPY = f"""
    select message.id from message join session on session.id = message.session_id
    where message.message_id = ? and message.session_id <> ? and session.agent = ?
      and message.role = ? and {_SAME_WORDS} and message.parts = ? limit 1
"""

#: The same words, in the session this one was forked from, a little after the last ones found.
COPY_OF_FORK = f"""
    select id, seq from message
    where session_id = (select id from session where agent = ? and session = ?)
      and seq > ? and seq <= ? and part = 1 and role = ? and {_SAME_WORDS} and parts = ?
    order by seq limit 1
"""

#: The session of a name and those it was forked from in turn, the eldest first; a ring ends too.
ORIGINS = """
    with recursive line (session, forked_from, steps) as (
        select session, forked_from, 1 from session where agent = ? and session = ?
        union all
        select session.session, session.forked_from, line.steps + 1
        from session join line on session.session = line.forked_from
        where session.agent = ? and line.forked_from <> '' and line.steps < 20
    )
    select session from line order by steps desc
"""

#: The sessions that were forked from one. What a forgotten one said first is the other's all the
#: same.
FORKS = """
    select session from session where agent = ? and forked_from = ? and forgotten = 0 order by id
"""

#: The session repeats a message of another one, which alone keeps it.
COPIED = "insert into copied (session_id, message_id) values (?, ?) on conflict do nothing"

#: Words that are kept were said in a directory.
PLACE = "insert into place (session_id, cwd) values (?, ?) on conflict do nothing"

ADD = """
    insert into message (session_id, seq, message_id, part, parts, base, ordinal, reading, role,
                         text, at_ms, cwd, project, line_end, state, said)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

#: Where the last ? turns of this reading begin.
TURN = """
    select seq from message where session_id = ? and role = 'user' and part = 1 and state = 'live'
    and reading = ? order by seq desc limit 1 offset ?
"""

ROLL_BACK = """
    update message set state = 'rolled_back'
    where session_id = ? and seq >= ? and reading = ? and state = 'live'
"""

DROP_MESSAGES = "delete from message where session_id = ?"

MESSAGES = """
    select message.seq, message.message_id, message.role, message.text, message.at_ms, message.cwd,
           message.project, session.kind
    from message join session on session.id = message.session_id
    where session.agent = ? and session.session = ? and message.seq > ? and message.seq <= ?
      and message.state = 'live' and message.said is null {only} order by message.seq limit ?
"""

#: A call met again keeps its place; only where it stands in the transcript may have changed.
SAVE = """
    insert into saved (session_id, call, seq, line_end) values (?, ?, ?, ?)
    on conflict (session_id, call) do update set line_end = excluded.line_end
"""

#: The newest message an agent's own saving came after, up to a byte of the transcript.
LAST_SAVED = """
    select max(saved.seq) from saved join session on session.id = saved.session_id
    where session.agent = ? and session.session = ? and saved.line_end <= ?
"""

#: How often a person spoke, up to a byte of the transcript.
RUNS = """
    select count(*) from message join session on session.id = message.session_id
    where session.agent = ? and session.session = ? and message.role = 'user'
      and message.part = 1 and message.state = 'live' and message.line_end <= ?
"""

#: What was given elsewhere counts as given.
NUMBER_AFTER = """
    update session set last_seq = ?3 where agent = ?1 and session = ?2 and last_seq < ?3
"""

CITE = "insert into citation (session_id, notes, at_ms) values (?, ?, ?)"

CITATIONS = """
    select citation.id, citation.notes, citation.at_ms
    from citation join session on session.id = citation.session_id
    where session.agent = ? and session.session = ? order by citation.id limit ?
"""

CREDITED = """
    delete from citation where id <= ?
    and session_id = (select id from session where agent = ? and session = ?)
"""

SESSION = """
    select id, agent, session, kind, parent, forked_from, transcript, position, bad_lines, skipped,
           last_active_ms, last_seq, version, tools, forgotten
    from session
"""

TOTALS = """
    select count(*), sum(role = 'user') from message
    where session_id = ? and part = 1 and state = 'live'
"""

PROJECTS = """
    select distinct project from message
    where session_id = ? and state = 'live' and project <> '' order by project
"""

#: Root sessions that were read later than ?, by project, with at least ? turns of a person there.
ACTIVE = """
    select message.project, session.agent, session.session,
           coalesce(session.last_active_ms, session.ingested_ms), session.ingested_ms
    from session join message on message.session_id = session.id
    where session.kind = 'root' and session.ingested_ms > ? and message.role = 'user'
      and message.part = 1 and message.state = 'live' and message.project <> ''
    group by message.project, session.id having count(*) >= ?
    order by 4 desc, session.id desc
"""

#: When the newest message of a project was said.
NEWEST = "select max(at_ms) from message where project = ?"

COUNTS = """
    select agent, count(*), sum(kind = 'root'), sum(bad_lines) from session group by agent
    order by agent
"""

COUNT_MESSAGES = """
    select count(*), sum(role = 'user') from message where part = 1 and state = 'live'
"""

#: Of each project: its sessions, and when something was last said in it.
PROJECT_USE = """
    select project, count(distinct session_id),
           max(coalesce(message.at_ms, session.last_active_ms))
    from message join session on session.id = message.session_id
    where message.state = 'live' and project <> '' group by project
"""

#: What was said in one project belongs to another from now on.
REPOINT = "update message set project = ? where project = ? and (? is null or cwd = ?)"

MESSAGES_IN = "select count(*) from message where project = ?"

#: What a session said nobody knew where, now that the directory is known.
SAY_WHERE = """
    update message set cwd = ?, project = ?
    where session_id = ? and cwd = '' and said is null
"""

DIRECTORIES = "select distinct cwd from message where project = ? and cwd <> '' order by cwd"

# -- letting go of words (``stripping.py``) --------------------------------------------------------

STRIP = "update message set text = '', cwd = '', said = ? where id = ? and said is null"

#: Words of a session that another one keeps, which was read first and goes on from it.
#: Where it is the other way round they are the other's.
KEPT_ELSEWHERE = """
    select part.id, part.text from copied
    join session mine on mine.id = copied.session_id
    join message first on first.id = copied.message_id
    join session other on other.id = first.session_id
    join message part on part.session_id = first.session_id
        and part.seq >= first.seq and part.seq < first.seq + first.parts
    where copied.session_id = ? and part.said is null and mine.forked_from <> other.session
      and (other.forked_from = mine.session or other.last_active_ms > mine.last_active_ms)
    limit ?
"""

FORGET = """
    insert into session (agent, session, kind, parent, forked_from, transcript, position, reading,
                         head, tail, last_seq, bad_lines, skipped, state, ingested_ms, forgotten)
    values (?, ?, 'root', '', '', '', 0, 0, '', '', 0, 0, '{}', '', 0, 1)
    on conflict (agent, session) do update set forgotten = 1
"""

NUMBER = "select id from session where agent = ? and session = ?"

#: Of one session: up to a ``seq``, or taken back by the person; said before a time, if any.
KEPT_OF = """
    select message.id, message.text from message join session on session.id = message.session_id
    where message.session_id = ?1 and (message.seq <= ?2 or message.state = 'rolled_back')
      and message.said is null
      and (?3 is null
           or coalesce(message.at_ms, session.last_active_ms, session.ingested_ms) < ?3)
    order by message.seq limit ?4
"""

KEPT_IN = """
    select id, text from message where session_id = ? and cwd = ? and said is null
    order by seq limit ?
"""

WAITS = "select id from message where session_id = ? and seq > ? and said is null"

DROP_MESSAGE = "delete from message where id = ?"

DROP_SAVED = "delete from saved where session_id = ? and seq > ?"

DROP_CITATIONS = "delete from citation where session_id = ?"

#: The next reader has no state, and so reads from the beginning, as a new reading.
BEGIN_ANEW = "update session set position = 0, head = '', tail = '', state = '' where id = ?"

#: Guard: nothing that is kept was said there.
LEAVE_PLACES = """
    delete from place where session_id = ? and not exists (
        select 1 from message where message.session_id = place.session_id
            and message.cwd = place.cwd and message.said is null)
"""

OLD = """
    select distinct session.id, session.agent, session.session
    from message join session on session.id = message.session_id
    where message.said is null and message.at_ms < ?
    union
    select distinct session.id, session.agent, session.session
    from message join session on session.id = message.session_id
    where message.said is null and message.at_ms is null
      and coalesce(session.last_active_ms, session.ingested_ms) < ?
"""

KEEPING = """
    select session.id, session.agent, session.session from session
    where exists (select 1 from place where place.session_id = session.id)
"""

PLACES = """
    select session.id, session.agent, session.session, place.cwd
    from place join session on session.id = place.session_id
"""

#: The sessions no words of which may ever be kept.
FORGOTTEN = "select agent, session from session where forgotten = 1 order by id"
