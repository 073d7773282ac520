"""What a person says in Arabic that is meant to last. The statement stays in their words."""

from __future__ import annotations

import re
from collections.abc import Callable

from memoryd.memory.providers.rules_found import Found, command, place, technical, tidy

_ALWAYS = r"(?:دائماً|دائمًا|دائما)"
_NEVER = r"(?:أبداً|أبدًا|أبدا|ابداً|ابدا)"
_FROM_NOW = r"(?:من (?:الآن|الان) (?:فصاعداً|فصاعدًا|فصاعدا)|ابتداء?ً? من (?:الآن|الان))"
_REPORTED = re.compile(
    r"(?:ملاحظة الوكيل|السيرة تقول|قال المساعد|لخّص هذا|لخص هذا|ترجم|يقول|تقول|قال|قالت)(?!\w)"
)
_NO_SUBJECT = re.compile(r"(?:هو|هي|هذا|هذه|ذلك|تلك|الخطأ|المشكلة|الخلل|العطل|التغيير)(?!\w)")
#: Who is not the person: what they like or suffer from is theirs.
_SOMEBODY = re.compile(
    r"(?:زميل|صديق|زوج|مدير|أخ|اخ|أخت|اخت|والد|ابن|بنت|جار|رئيس)(?:ي|تي|نا|تنا|ه|ها)(?!\w)"
    r"|(?:هو|هي|هم)(?!\w)"
)
_OF_THE_CRAFT = re.compile(
    r"[A-Za-z]{2}|كود|دوال|دالة|اختبار|رسائل|ردود|تعليق|أسماء|متغير|رموز|ملف|فروع|واجه|توثيق|أخطاء"
)
#: "Do not forget to ...": something to be done once.
_TASK = re.compile(r"(?:أن )?(?:ت|ن)\w{2,}(?!\w)")
_VERBOSITY = {"مختصرة": "concise", "قصيرة": "concise", "مفصلة": "detailed", "مفصّلة": "detailed"}

_Build = Callable[[re.Match[str]], Found | None]


def find(statement: str) -> Found | None:
    """What ``statement`` (one sentence, lead-in taken off) wants to be remembered, if anything."""
    bare = re.sub(r"^(?:من فضلك|رجاءً|رجاء|لو سمحت)،?\s+", "", statement.rstrip(" .!،"))
    if _REPORTED.match(bare):
        return None
    for expression, build in _RULES:
        match = expression.fullmatch(bare)
        if match is not None:
            return build(match)
    return None


def _remember(match: re.Match[str]) -> Found | None:
    said = tidy(match["x"])
    inner = find(said) or find(re.sub(r"^(?:نا|ي)\s", "", said))
    if inner is not None:
        return inner
    if len(said.split()) < 3 or re.match(r"(?:هذا|هذه|متى|كيف|ما)(?!\w)", said):
        return None
    if _SOMEBODY.match(said) or (match.groupdict().get("to") and _TASK.match(said)):
        return None
    if re.match(r"(?:أنا|انا|اسمي|عملي|لغتي)(?!\w)|ني(?!\w)", said):
        return Found(f"{said}.", "personal", "user")
    return Found(f"{said}.", "project", "project")


def _rule(match: re.Match[str]) -> Found | None:
    said = tidy(match[0])
    return Found(f"{said}.", "operating-style", "feedback") if len(said.split()) >= 3 else None


def _from_now_on(match: re.Match[str]) -> Found | None:
    inner = find(tidy(match["x"]))
    return inner if inner is not None else _rule(match)


def _prefer_technical(match: re.Match[str]) -> Found | None:
    value = technical(match["x"])
    return Found(f"Prefer {value}.", "preference", "feedback", value) if value else None


def _prefer(match: re.Match[str]) -> Found | None:
    """With the doubled letter or the pronoun it is "I prefer", never "the best"."""
    value, said = technical(match["x"]), tidy(match[0])
    if value:
        return Found(f"Prefer {value}.", "preference", "feedback", value)
    short = len(said.split()) <= 12
    return Found(f"{said}.", "preference", "feedback") if short else None


def _verbosity(match: re.Match[str]) -> Found | None:
    value = f"{_VERBOSITY[match['x']]} replies"
    return Found(f"Prefer {value}.", "preference", "feedback", value)


def _uses(match: re.Match[str]) -> Found | None:
    return Found(f"{tidy(match[0])}.", "technical-default", "project")


def _run(match: re.Match[str]) -> Found | None:
    what = command(match["x"])
    return Found(f"Run tests with `{what}`.", "technical-default", "project") if what else None


def _lives(match: re.Match[str]) -> Found | None:
    subject, where = tidy(match["s"]), place(match["p"], named=True)
    if where is None or _NO_SUBJECT.match(subject) or len(subject.split()) > 8:
        return None
    return Found(f"{subject} {match['verb']} {where}.", "project", "reference")


def _person(match: re.Match[str]) -> Found | None:
    return Found(f"{tidy(match[0])}.", "personal", "user")


def _decided(match: re.Match[str]) -> Found | None:
    return Found(f"{tidy(match[0])}.", "project", "project")


def _taste(match: re.Match[str]) -> Found | None:
    """A liking of a kind of things in a place of their own, never of what was just shown."""
    said = tidy(match["x"])
    if re.match(r"(?:هذا|هذه|ذلك|تلك|كيف|أن|ما)(?!\w)", said) or not 2 <= len(said.split()) <= 10:
        return None
    if _OF_THE_CRAFT.search(said) is None:
        return None
    return Found(f"{tidy(match[0])}.", "preference", "feedback")


def _instead(match: re.Match[str]) -> Found | None:
    new, old = technical(match["new"]), technical(match["old"])
    if new is None or old is None:
        return None
    return Found(f"Use {new} instead of {old}.", "technical-default", "project")


def _deadline(match: re.Match[str]) -> Found | None:
    dated = re.search(r"\d", match["x"])
    return Found(f"{tidy(match[0])}.", "recurring-constraint", "project") if dated else None


def _rule_of(expression: str, build: _Build) -> tuple[re.Pattern[str], _Build]:
    return re.compile(expression), build


_VERBS = "استخدم|شغّل|شغل|اكتب|أضف|اضف|نفذ|نفّذ|اختبر|راجع|ابدأ|احفظ|اشرح|رد|ردّ"
_PEOPLE = "مهندسة?|مطورة?|مطوّرة?|طالبة?|باحثة?|مصممة?|مديرة?|مبرمجة?|معلمة?"
_KEPT = "موجودة?|محفوظة?|مخزنة?|مخزّنة?|يوجد|توجد|موثقة?"
_THAT = "أننا|اننا|أنها|أنه|أنّ|بأن"
_RULES = (
    _rule_of(
        rf"(?:تذكر|تذكّر|لا تنسَ|لا تنسى|لا تنس) (?:{_THAT}|(?P<to>أن|ان))[:،]? (?P<x>.+)", _remember
    ),
    _rule_of(r"(?:تذكر|تذكّر)[:،] (?P<x>.+)", _remember),
    _rule_of(rf"{_FROM_NOW}[:،]? (?P<x>.+)", _from_now_on),
    _rule_of(rf"(?P<x>.+?)،? {_FROM_NOW}", _from_now_on),
    _rule_of(rf"(?:خلّي|خلي|اجعل) الردود (?P<x>{'|'.join(_VERBOSITY)})(?: {_ALWAYS})?", _verbosity),
    _rule_of(
        r"استخدم (?P<x>.+?) (?:افتراضياً|افتراضيًا|افتراضيا|كافتراضي|بشكل افتراضي)",
        _prefer_technical,
    ),
    _rule_of(rf"{_ALWAYS}،? (?!ما |يفشل|تفشل|يحدث|تحدث|نفس |هناك ).+", _rule),
    _rule_of(rf"(?:{_VERBS}) (?:.+ {_ALWAYS}|{_ALWAYS} .+)", _rule),
    _rule_of(
        rf"(?:نحن )?لا (?!نعرف|نعلم|نفهم|نرى|نجد|نريد|نستطيع)ن\w+ (?:.+ {_NEVER}|{_NEVER} .+)",
        _decided,
    ),
    _rule_of(rf"(?:نحن )?{_ALWAYS} (?!نفس)ن\w+ .+|(?:نحن )?(?!نفس)ن\w+ {_ALWAYS} .+", _decided),
    _rule_of(
        r"(?:قررنا|اتفقنا|اخترنا)(?: على)? (?:استخدام|اعتماد|ترك|دعم|استعمال|الاعتماد|[A-Za-z]).*",
        _decided,
    ),
    _rule_of(
        r"(?:أنا |انا )?(?:لا أحب|لا احب|أكره|اكره|أحب|احب) (?P<x>.+ في .+|\S+ال\S+ .+)", _taste
    ),
    _rule_of(
        r"استخدم (?P<new>.+?) (?:بدلاً من|بدلًا من|بدلا من|بدل) (?P<old>.+?)"
        r" (?:في هذا المشروع|في المشروع|في مشروعنا|هنا|من الآن فصاعداً)",
        _instead,
    ),
    _rule_of(
        r"(?:الموعد النهائي|موعد الإصدار|موعد التسليم)(?: .+?)? (?:هو|يوم|في) (?P<x>.+)", _deadline
    ),
    _rule_of(rf"لا ت\w+ (?:.+ {_NEVER}|{_NEVER} .+)|{_NEVER} لا ت\w+ .+", _rule),
    _rule_of(r"(?:(?:أنا |انا )?(?:أفضّل|افضّل)|(?:أنا|انا) (?:أفضل|افضل)) (?P<x>.+)", _prefer),
    _rule_of(r"(?:أفضل|افضل) (?P<x>.+)", _prefer_technical),
    _rule_of(r"(?:نستخدم|نستعمل) \S+(?: \S+){0,4} (?:لـ ?|ل|من أجل |كـ|بدل |بدلاً من ).+", _uses),
    _rule_of(r"(?:المشروع|مشروعنا|هذا المشروع) (?:يستخدم|يستعمل) .+", _uses),
    _rule_of(
        r"(?:شغّل|شغل|نشغّل|نشغل) (?:الاختبارات|الاختبار)"
        r" (?:باستخدام |بواسطة |عبر |بـ ?|ب)(?P<x>.+)",
        _run,
    ),
    _rule_of(rf"(?P<s>.+?) (?P<verb>(?:{_KEPT}) (?:في|تحت|على)) (?P<p>.+)", _lives),
    _rule_of(rf"(?:أنا|انا) (?:{_PEOPLE})(?: .*)?", _person),
    _rule_of(r"اسمي \S+(?: \S+)?|(?:لغتي الأم|منطقتي الزمنية) .+|(?:نادني|نادِني) \S+", _person),
)
