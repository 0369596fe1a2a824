"""Where a reply stops thinking aloud and starts to answer, and where it ends: the markers of all models, in one place.

    MARKERS     what opens reasoning, what ends it, and who writes it so: patterns of regular expressions
    PHRASES     the same where only a reply that begins with it is meant
    OPENS       a marker that opens reasoning, wherever it stands
    BEGINS      a reply that begins with one: match, never search
    ENDS        a marker that ends it
    answer      what stands behind it
    EDGES       what servers leave before and behind a reply, and around a program in it
    before_end  where the tokens begin that end a text
    LONGEST     characters of a reply that is read at all: half a million tokens, more than any server gives

Whoever reads a reply takes them from here: the client that keeps reasoning apart, what finds a program, a query or a
number in a reply, and the table that counts what was cut while thinking. Left out: what an answer holds (extract.py).
"""

from __future__ import annotations

import re

LONGEST = 1 << 21

_TAG = r"(?:[a-z0-9]{1,20}[:_])?(?:think(?:ing|_fast|_faster)?|thoughts?|reasoning|reflection|antThinking)"
MARKERS = (
    # DeepSeek, Qwen, GLM, Kimi K2, MiniMax, Nemotron, Granite, Phi and most others; <thought> EXAONE Deep, Marco-o1;
    # <reasoning> Reka; <reflection> Reflection; <seed:think> Seed-OSS; <longcat_think> LongCat; <think_fast> K2
    (rf"<{_TAG}(?:[ \t][^<>\n]{{0,100}}+)?>", rf"</{_TAG}>"),
    (r"\[THINK\]", r"\[/THINK\]"),  # Mistral: Magistral, Ministral 3
    (r"◁think▷", r"◁/think▷"),  # Kimi-VL, Kimi-Dev
    (  # Harmony: gpt-oss
        r"(?:<\|start\|>\w*+)?<\|channel\|>(?:analysis|commentary)(?: to=[^<\n]{1,80}+)?(?:<\|message\|>)?",
        r"(?:<\|end\|>)?(?:<\|start\|>\w*+)?<\|channel\|>final(?:[ ]?<\|constrain\|>\w*+)?<\|message\|>",
    ),
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>|<\|START_(?:RESPONSE|TEXT)\|>"),  # Cohere: Command R7B, A
    (r"<\|channel>[ \n]?thought\b\n?+", r"<channel\|>"),  # Gemma 4
    (r"<unused94>(?:thought\b\n?+)?", r"<unused95>"),  # MedGemma
    (r"\[unused16\]", r"\[unused17\]"),  # openPangu
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),  # Apertus
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>|<\|begin_of_solution\|>"),  # Sky-T1, OpenThinker
    (  # Solar Open, and tags with bars
        r"(?:<\|begin\|>\w*+)?<\|think(?:ing)?\|>",
        r"<\|/think(?:ing)?\|>|(?:<\|end\|>)?(?:<\|begin\|>\w*+)?<\|content\|>",
    ),
    (r"<\|im_start\|>think\b\n?+", r"<\|im_start\|>answer\b\n?+"),  # s1
)
PHRASES = (
    (r"Here(?:'s| is) my thought process:", r"(?<![^\n])Here(?:'s| is) my response:"),  # Granite 3
    (r"Here are my reasoning steps:", r"\[BEGIN FINAL RESPONSE\]"),  # Apriel
    (r"(?-i:analysis(?=[A-Z][a-z']*+,?[ ][a-z\d\"'(]))", r"(?-i:assistantfinal)"),  # Harmony without its tokens
)
_OPENS = "|".join(opens for opens, _ in MARKERS)
_BEGINS = "|".join(opens for opens, _ in PHRASES)
_ENDS = "|".join(ends for _, ends in MARKERS + PHRASES)
OPENS = re.compile(rf"(?:{_OPENS}|\A\s*(?:{_BEGINS}))", re.I)
BEGINS = re.compile(rf"\s*(?:{_OPENS}|{_BEGINS})", re.I)
ENDS = re.compile(  # several in a row are one; before a quote or an escape it is a string in a program
    rf"(?:{_ENDS})(?:\s*(?:{_ENDS})){{0,8}}+(?![\"'\\]|`(?!``))", re.I
)
OPENS_LINE = re.compile(rf"^[ \t]*(?:{_OPENS})", re.I | re.M)
OPENS_AT_END = re.compile(rf"(?:{_OPENS})[ \t]*$", re.I)

_TOKEN = r"<[|｜][^\s<>|｜]{1,40}[|｜]>"  # <|im_end|> <|eot_id|> <|endoftext|> <|return|> <｜end▁of▁sentence｜> …
_WRAPPING = r"answer|final_answer|response|solution|output|python"
EDGES = (
    # At the start of a line: of a turn, of a tool call (Llama's <|python_tag|>), of an answer.
    rf"{_TOKEN}(?:assistant\b|model\b)?|<s>|<bos>|<start_of_turn>(?:model\b)?|<\|turn>(?:model\b)?|\[PYTHON\]"
    rf"|<(?P<tag>{_WRAPPING})>(?!.{{0,300}}</(?P=tag)>\s*\S)",
    # At the end of one, where no line of Python can end so: of a turn, hence of all that is an answer
    rf"{_TOKEN}|</s>|<eos>|<eod>|<end_of_turn>|<turn\|>"  # Llama 2, Mistral, Gemma
    r"|<seed:eos>|\[\|endofturn\|\]|\[e~\[|<SPECIAL_\d\d?>|<extra_id_1>",  # Seed-OSS, EXAONE, MiniMax, Nemotron
    # and of an answer alone.
    rf"</(?:{_WRAPPING})>|\[/PYTHON\]|\[END FINAL RESPONSE\]",
)
_AT_START = re.compile(rf"(?:\s*(?:{EDGES[0]}))+", re.I)
_AT_END = re.compile(rf"(?:{EDGES[1]}|{EDGES[2]})\Z", re.I)
_ENDS_TURN = re.compile(EDGES[1], re.I)
TURN_ENDS = re.compile(rf"(?:{EDGES[1]})(?:[ \t]*(?:{EDGES[1]})){{0,8}}+[ \t]*$", re.I | re.M)
_TAIL = 60  # characters: more than any of them has


def answer(reply: str) -> str | None:
    """What stands behind the reasoning of a reply, without the tokens that end it; None where there is none of it."""
    if len(reply) > LONGEST:
        return None
    text = ENDS.split(reply)[-1]
    if BEGINS.match(text):
        return None
    if again := OPENS_LINE.search(text):
        text = text[: again.start()]
    return text[after_start(text) : before_end(text)] if text.strip() else None


def after_start(text: str) -> int:
    """Where a text begins behind the tokens that servers leave before it."""
    start = _AT_START.match(text)
    return start.end() if start else 0


def before_end(text: str) -> int:
    """Where the tokens begin that stand at the end of a text; its length where there are none."""
    end = found = len(text)
    while end:
        tail = text[max(0, end - _TAIL) : end]
        bare = tail.rstrip()
        begins = max(bare.rfind("<"), bare.rfind("[", 0, -1), 0)
        token = _AT_END.match(bare, begins)
        if token:
            found = end = end - len(tail) + token.start()
        elif bare:
            break
        else:
            end -= len(tail)
    return found


def ends_turn(tokens: str) -> bool:
    """Is one of those the end of a turn, so that nothing behind it is an answer?"""
    return _ENDS_TURN.search(tokens) is not None
