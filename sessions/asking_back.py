"""Whether a prompt asks back to what was said or done before, in English or Arabic.

It asks back to a past decision or doing of ours, or to what somebody told. What the agent just did
("why did you delete it?"), what happened by itself ("why did the test fail?", "why did we get a
timeout?") and what is to be done ("how do we fix it?") is plain work. A request to remember
something from now on is none either. Both columns of the table in docs/sessions.md are held
against this by a test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoryd.sessions.tokens import fold

#: What of a prompt is looked at.
PROMPT_CHARACTERS = 10_000

_ASKED = "when|what|where|how|who|why|which|whether"
_THING = "last|we|i|the|that|this|our|my|your"
_BEFORE = r"(?:before|already|earlier|previously|in the past|yesterday|last (?:week|month|year))"
#: The rest of a question, so much of it that what is pasted costs no time.
_SOME = r"[^.?!]{0,200}"
_END = r" ?(?:[?.!]|$)"
_CHOOSE = (
    r"(?:choose|pick|select|adopt|reject|drop|abandon|prefer|decide|agree|settle|avoid|rule out"
    r"|go (?:with|for|back)|(?:end|wind) up|opt|switch|move (?:to|from|away|off)|migrate)"
)
_USE = r"(?:use|try|introduce|replace|keep|stop using|get rid of)"
_MEND = (
    r"(?:fix|solve|resolve|handle|implement|set ?up|configure|build|deploy|test|do|work around"
    r"|deal with|debug|address|install|release|name|structure|organi[sz]e|mend|migrate|make"
    r"|decide|agree|settle|measure|speed up|get (?:[^.?!]{0,100} )?(?:to work|working|running))"
)
_OUR = r"(?:decision|agreement|conclusion|consensus|verdict)"
_CHOSE = (
    r"(?:chose|picked|decided|agreed|settled|went (?:with|for)|switched|rejected|dropped"
    r"|moved (?:to|from|away|off)|abandoned|adopted)"
)
_DISCUSSED = r"(?:discussed|(?:talked|spoke|spoken) about)"
_NOW = r"(?:(?:ever|already|once|really|finally|originally|last|actually|not) )?"

#: English and Arabic, over folded text (``fold``: caseless, no vowel signs, one form of a letter).
_TRIGGERS = tuple(
    re.compile(expression)
    for expression in (
        r"\b(?:do|did|don t|didn t) (?:you|we) (?:still )?(?:remember|recall) (?!to\b)\w",
        rf"\b(?:remember|recall) (?:{_ASKED}|last)\b",
        r"\blast time\b",
        r"\b(?:last|previous|earlier) (?:session|conversation|chat)\b",
        r"\bwhat did (?:we|i|you) (?:end up )?(?:decid|agree|conclud|settl)",
        r"\bwhat did (?:we|i|you) say about\b",
        r"\bcontinue from\b",
        r"\bwhere (?:did )?we (?:leave|left) off\b",
        rf"\bwhere were we{_END}",
        r"\bwhat were we (?:working on|doing|talking about|discussing)\b",
        rf"\bwe (?:(?:have|had|ve|already) )*{_DISCUSSED}\b",
        # Decisions.
        rf"\bwhat (?:is|s|was|were) our (?:\w+ )?(?:{_OUR}|reason|reasoning|rationale|choice)s?\b",
        r"\bwhat (?:was|were) the (?:\w+ )?(?:decision|agreement)s? (?:on|about|for|regarding)\b",
        rf"\b(?:what|which) (?:\w+ )?{_OUR}s? did (?:we|i) (?:make|take|reach|come to)\b",
        rf"\bwhat (?:have|had) (?:we|i) {_NOW}(?:{_CHOSE}|said|told you)\b",
        rf"\bwhy (?:did|didn t) (?:we|i) {_NOW}(?:{_CHOOSE}|{_USE})\b",
        rf"\bwhy (?:had )?we (?:had )?{_CHOSE}\b",
        rf"\b(?:which|what) (?:\w+ ){{1,4}}did (?:we|i) {_NOW}(?:{_CHOOSE}|use)\b",
        rf"\bwhat did (?:we|i) {_NOW}(?:choose|pick|select|use|try|do (?!wrong\b)\w+|call|name)\b",
        rf"\bwhen did (?:we|i) {_NOW}(?:{_CHOOSE}|{_USE}|{_MEND}|talk|discuss)\b",
        r"\bwhere did (?:we|i) (?:put|document|write|note|decide|say|discuss|keep)\b",
        r"\b(?:as|like|what) we (?:(?:have|had|already) )?(?:agreed|decided|settled)\b",
        # Doings.
        rf"\bhow did (?:we|i) {_NOW}{_MEND}\b",
        rf"\b(?:did|didn t) (?:we|i) {_NOW}(?:talk|speak) (?:about|of)\b",
        rf"\b(?:did|didn t) (?:we|i) {_NOW}(?:discuss|decide|agree|settle|mention|conclude)\b",
        rf"\b(?:did|didn t) (?:we|i) {_NOW}(?:reach|make|come to) an? {_OUR}\b",
        rf"\b(?:did|didn t) we {_NOW}(?:{_USE}|{_MEND}|have|see|hit) {_SOME}\b{_BEFORE}{_END}",
        rf"\b(?:have|haven t|had) (?:we|i) {_NOW}(?:{_CHOSE}|{_DISCUSSED})\b",
        r"\b(?:have|haven t) we (?:ever (?:tried|used|seen|had|fixed|solved)"
        rf"|(?:tried|used|seen|had|fixed|solved) {_SOME}\b{_BEFORE}{_END})",
        # What somebody told.
        r"\bwhat did (?:i|we|you) (?:tell (?:you|me)|mention|explain)\b",
        rf"\b(?:did|didn t) (?:i|you) {_NOW}tell (?:you|me) (?!to\b)\w",
        rf"\b(?:have|haven t|had) (?:i|you) {_NOW}told (?:you|me) (?!to\b)\w",
        r"\b(?:as|like|what) (?:i|you) (?:(?:have|had|already) )?told (?:you|me)\b",
        rf"\bi (?:(?:have|had|ve|already) )*told you (?:about|{_BEFORE})\b",
        # The same in Arabic.
        r"(?:^| )هل ت?تذكر",
        r"(?:^| )(?:اتذكر|تتذكر)",
        r"(?:^| )(?:ماذا|ما الذي|علي ماذا|شو|ايش) (?:كنا )?"
        r"(?:قررنا|اتفقنا|قلنا|قلت|اخترنا|استخدمنا|اعتمدنا|اخبرتك|فعلنا|استنتجنا)",
        r"(?:^| )ماذا ذكرت لك(?: |$)",
        r"(?:^| )(?:ما|ماذا|شو) (?:(?:كان|كانت|هو|هي) )?(?:قرارنا|اتفاقنا|خلاصتنا|اختيارنا)",
        r"(?:^| )(?:لماذا|ليش|ليه|لم) (?:قررنا|اخترنا|اعتمدنا|رفضنا|انتقلنا|استبدلنا|تركنا|فضلنا"
        r"|استخدمنا|تخلينا|تجنبنا)",
        r"(?:^| )(?:لماذا|ليش|ليه) لم (?:نستخدم|نختر|نعتمد|نقرر)(?: |$)",
        r"(?:^| )كيف (?:كنا )?(?:اصلحنا|حللنا|عالجنا|فعلنا|اعددنا|نفذنا|بنينا|نشرنا|تعاملنا|قررنا)",
        r"(?:^| )(?:متي|اين) (?:قررنا|اتفقنا|اخترنا|انتقلنا|نشرنا|وضعنا|وثقنا|كتبنا|توقفنا|اصلحنا)",
        r"(?:^| )اي (?:\w+ ){1,3}(?:قررنا|اتفقنا|اخترنا|استخدمنا|اعتمدنا)",
        r"(?:^| )هل (?:قررنا|اتفقنا|حسمنا|اخبرتك|قلت لك|ذكرت لك)",
        r"(?:^| )هل سبق (?:(?:و?ان|لنا|لنا ان) )?\w+نا(?: |$)",
        r"(?:^| )(?:كما|مثلما) (?:اتفقنا|قررنا|قلت لك|اخبرتك)",
        r"(?:^| )(?:اخر مره|المره (?:الماضيه|السابقه|الاخيره))",
        r"(?:^| )(?:اكمل|لنكمل|نكمل|تابع|لنتابع) (?:من|حيث)",
        r"(?:^| )(?:ناقشنا|تحدثنا عن|تكلمنا عن)",
    )
)
#: "Remember the lease bug?" asks; "remember that I use pnpm, ok?", "remember the lease is 300 s"
#: and "can you remember my name?" want something saved.
_REMEMBER = re.compile(
    r"\b(?:(\w+) )?(?:(\w+) )?remember (?!that (?:i|we|you|my|our|the|it|this)\b)"
    rf"(?:{_THING})\b([^.!?\n]*\??)"
)
_WANTING = frozenset(("please", "can", "could", "will", "would", "must", "should", "to", "always"))
_SPACE = re.compile(r"[\s'’_,;:()\[\]\"“”«»،؛-]+")

#: Words that say nothing about what is looked for, those of the triggers among them. Words that
#: name what was done ("deploy", "migrate", "install") are none.
SAYING_NOTHING = frozenset(
    re.findall(
        r"\w+",
        fold(
            """
    a about actually adopt adopted after again ago agree agreed agreement already all also am an and
    any anything are as at avoid back be because been before but by call came can chat choice choose
    chose chosen come conclude concluded conclusion consensus continue conversation correct could d
    day days deal decide decided deciding decision decisions did didn didnt discuss discussed
    discussing do does doing don done dont earlier either else end ended even ever everything
    explain explained finally fix fixed fixing for from get give go going got ha had hadn handle
    handled has have haven having he hello her hey hi him his hm how i if im in instead into is isn
    it its ive just keep kept know last left leave let like ll m made make making matter maybe me
    mean mention mentioned month months my name named nice no not now of off ok okay on once one
    opt or originally other our out over past pick picked please prefer preferred previous
    previously put re reach reached really reason reasoning reasons recall reject rejected remember
    remembered remind resolve resolved right s said same say saying see select selected session
    sessions settle settled she should show so solve solved some something spoke spoken still stop
    sure switch switched t take taken talk talked talking tell telling than thanks that the their
    them then there these they thing things think this those thought time to today together told
    too took tried true try trying up us use used uses using ve was wasn way we week weeks well
    went were weren what whats when where whether which who why wind will with work worked working
    would wouldn wrong year years yes yesterday you your
    هل تذكر تتذكر اتذكر ماذا ما الذي على قررنا اتفقنا قلنا قلت اخر مرة المرة الماضية السابقة
    الاخيرة اكمل لنكمل نكمل تابع لنتابع من حيث ناقشنا تحدثنا تكلمنا عن في إلى هذا هذه كان كنا شو
    ان انا نحن بخصوص بشأن حول
    لماذا ليش ليه لم كيف متى اين اي ايش كانت هو هي لك اخبرتك ذكرت سبق وان لنا قبل قرارنا اتفاقنا
    خلاصتنا اختيارنا اخترنا اعتمدنا رفضنا انتقلنا استبدلنا تركنا فضلنا استخدمنا تخلينا تجنبنا نستخدم
    نختر نعتمد نقرر اصلحنا حللنا عالجنا فعلنا تعاملنا وضعنا توقفنا حسمنا استنتجنا كما مثلما جربنا
    صحيح اليس كذلك نعم لا امس بالامس مع او ثم قد لقد ذلك تلك التي
    """
        ),
    )
)


def asks_back(prompt: str) -> bool:
    """Whether a prompt asks back to what was said before, in English or Arabic.

    A request to remember something from now on is none.
    """
    text = _SPACE.sub(" ", fold(prompt[:PROMPT_CHARACTERS])).replace("؟", "?").strip()
    return any(trigger.search(text) for trigger in _TRIGGERS) or any(_asked_for(text))


def _asked_for(text: str) -> Iterator[bool]:
    for found in _REMEMBER.finditer(text):
        first, second, rest = found.groups()
        yield rest.endswith("?") and not _WANTING & {first, second}
