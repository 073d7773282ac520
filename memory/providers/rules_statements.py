"""A person's message as statements of their own: what is pasted, quoted or asked is left out.

Precision comes first: a statement that is missed will be said again, one that was never meant
stands in the memory until somebody finds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoryd.memory.scanner import verdicts

#: A message longer than this is mostly pasted.
MESSAGE_CHARACTERS = 6_000
MESSAGE_LINES = 60
#: A line longer than this is an incidental paragraph.
LINE_CHARACTERS = 400
STATEMENT_CHARACTERS = 180
STATEMENT_WORDS = 28
#: Statements looked at in one message.
STATEMENTS = 24

_REASONING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.IGNORECASE | re.DOTALL)
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_INLINE_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
#: Lines that nobody writes by hand as a statement: quotes, code, tables, logs, traces, prompts.
_PASTED = re.compile(
    r"""\s{4,}\S|\t|>|\||\$\s|%\s|\#|<|@@|[+-]{3}|\d{4}-\d\d-\d\d|\d\d?:\d\d|\[?(?:\d+|(?-i:[A-Z]{4,}))[\]:]
    |(?:error|warning|info|debug|fatal|trace|panic|traceback|exception|at|file|caused\ by)\b[\s:("]
    |(?:import|from|def|class|const|let|var|return|func|fn|public|private|if|for|while)\b.*[;:{(]$
    |.*[;{}]$|[\w.-]+\s*=\s*\S""",
    re.VERBOSE | re.IGNORECASE,
)
_BULLET = re.compile(r"(?:[-*•–]|\d{1,2}[.)])\s+")
#: A line that ends in a colon announces somebody else's words, unless it announces rules.
_ANNOUNCES_RULES = re.compile(
    r"\b(?:remember|rules?|preferences?|conventions?|keep in mind|from now on|guidelines)\b"
    r"|تذكر|تذكّر|قواعد|من الآن",
    re.IGNORECASE,
)
_END = re.compile(r"(?<=[.!?؟。])[\"'”’»)]*(?:\s+|\Z)")
_QUOTES = re.compile(r"[\"“”„‟‘‛‹›«»]|(?<![A-Za-z])['’]|['’](?![A-Za-z])")
_LEAD_IN = re.compile(
    r"(?:(?:ok|okay|also|and|so|well|actually|btw|by the way|fyi|yes|yeah|hey|hi|thanks|thank you"
    r"|before (?:we|you|i) (?:start|begin|continue|go on)|one thing before (?:we|you) start"
    r"|great|perfect|good|right|one more thing|another thing|just so you know|for the record"
    r"|note(?! that)|reminder|important|in general|generally"
    r"|(?:in|for) (?:this|our|the) (?:project|repo|repository|codebase|code base|team)"
    r"|no|wait|sorry|correction|scratch that|on second thoughts?|heads.up"
    r"|(?:i(?:'ve| have)? )?changed my mind"
    r"|وأيضاً|وأيضا|أيضاً|أيضا|حسناً|حسنا|نعم|شكراً|شكرا|بالمناسبة|للعلم)"
    r"(?:\s*[,:!،–-]+\s*|\s+))+",
    re.IGNORECASE,
)
_HYPOTHETICAL = re.compile(
    r"\b(?:maybe|perhaps|possibly|might|probably|i think|i guess|i suppose|not sure|wonder(?:ing)?"
    r"|what if|suppose|imagine|let's say|hypothetically|for example|for instance|e\.g|could you"
    r"|can you|would you|can we|could we|should we|shall we|do you|if you want|would be nice"
    r"|i'm thinking|just kidding|or something|i used to|we used to|no longer|nobody|supposedly"
    r"|says|said|according to)\b"
    r"|^(?:if|when|what|why|how|who|where|which|once|after|before|unless|try|does|do you|is|are)\b"
    r"|(?<!\w)(?:ربما|لعل|هل|لو|ماذا|كيف|لماذا|أين|متى|مثلاً|مثلا|أظن|أعتقد|يمكنك|ممكن)(?!\w)",
    re.IGNORECASE,
)
_ONE_OFF = re.compile(
    r"\b(?:for|in|on|during|with) (?:this|that|these)"
    r"(?! (?:project|repo|repository|codebase|code base|team)\b)"
    r"|\b(?:for|in|on|during|with) the (?:next|current|following|above|last) "
    r"(?!\w+ of (?:every|each)\b)"
    r"|\b(?:for now|this time|just this|this once|just once|only once|today|tonight|tomorrow"
    r"|yesterday|right now|at the moment|for the moment|temporarily|currently|this (?:one|week|pr"
    r"|branch|commit|task|ticket|issue|change|file|test|session)|the same (?:error|issue|problem)"
    r"|until (?:i|we|you|it|the)|as above|see above|below|instead of that)\b"
    r"|(?<!\w)(?:هذه المرة|هذا الملف|هذه المهمة|في هذه|في هذا(?! المشروع)|لهذا|لهذه|مؤقتاً|مؤقتا"
    r"|الآن فقط"
    r"|حالياً|حاليا|اليوم|غداً|غدا)(?!\w)",
    re.IGNORECASE,
)


def statements(text: str) -> Iterator[tuple[str, str]]:
    """(span, statement) for each statement of a person's message, at most ``STATEMENTS``.

    The span is the person's exact words; the statement the same without the words that lead in.
    """
    if len(text) > MESSAGE_CHARACTERS or text.count("\n") > MESSAGE_LINES:
        return
    for count, piece in enumerate(_pieces(_own_words(text))):
        if count == STATEMENTS:
            return
        statement = _without_lead_in(piece)
        if _is_statement(piece, statement):
            yield piece, statement


def says_only(text: str, count: int) -> bool:
    """Whether a message is ``count`` sentences and nothing else but lead-ins and headings."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = 0
    for line in lines:
        if line.endswith((":", "：")) and _ANNOUNCES_RULES.search(line):
            continue
        bullet = _BULLET.match(line)
        pieces = _END.split(line[bullet.end() :] if bullet else line)
        said += sum(1 for piece in pieces if _without_lead_in(piece.strip()))
    return said == count


def _without_lead_in(piece: str) -> str:
    return _LEAD_IN.sub("", piece, count=1) if _LEAD_IN.match(piece) else piece


def _own_words(text: str) -> str:
    without = _REASONING.sub("\n", text)
    return _INLINE_FENCE.sub("\n", _FENCE.sub("\n", without))


def _pieces(text: str) -> Iterator[str]:
    """Sentences line by line, until a line announces words that are not the person's."""
    for raw in text.splitlines():
        line = raw.strip()
        if not line or _PASTED.match(raw) or len(line) > LINE_CHARACTERS:
            continue
        if line.endswith((":", "：")):
            if _ANNOUNCES_RULES.search(line) is None:
                return
            continue
        bullet = _BULLET.match(line)
        for piece in _END.split(line[bullet.end() :] if bullet else line):
            if piece.strip():
                yield piece.strip()


def _is_statement(piece: str, statement: str) -> bool:
    if not statement or len(statement) > STATEMENT_CHARACTERS:
        return False
    if len(statement.split()) > STATEMENT_WORDS or piece.rstrip().endswith(("?", "؟", "…", "...")):
        return False
    if "[REDACTED" in piece or _quoted(piece):
        return False
    if _HYPOTHETICAL.search(statement) or _ONE_OFF.search(statement):
        return False
    return not verdicts(piece)


def _quoted(piece: str) -> bool:
    """Whether words are quoted. Short code in backticks is the person's own way to write it."""
    ticks = piece.count("`")
    if ticks % 2 or piece.startswith("`") or ticks > 6:
        return True
    return _QUOTES.search(re.sub(r"`[^`]{1,80}`", "", piece)) is not None
