"""What is known of English when a person asks: words that carry no meaning, forms that no stemmer joins, near words.

Plain data, written for this project. Other languages are searched by their words as they stand.
"""

from __future__ import annotations

_STOP_TEXT = """
a about above after again all also am an and any anybody anyone anything are aren as at be because been before being
between both but by can cannot could couldn did didn do does doesn doing don during each either else ever every for
from further had hadn has hasn have haven having he her here hers herself him himself his how however i if in into is
isn it its itself just let ll many me might more most much must my myself nor not now of off on once one ones only
onto or other our ours ourselves out over own please re same shall she should shouldn so some somebody someone
something such than that the their theirs them themselves then there these they thing things this those though through
to too under until up upon us ve very was wasn we were weren what whatever when where which while who whom whose why
will with won would wouldn yes yet you your yours yourself yourselves s t d m tell told say said says mention
mentioned mentions kind
"""
STOP_WORDS = frozenset(_STOP_TEXT.split())
"""Dropped from a question that has other words; `may` is a month too."""

_FORMS_TEXT = """
become became; begin began begun beginning; bend bent; bite bit bitten; bleed bled; blow blew blown; break broke
broken; breed bred; bring brought; build built; burn burnt; buy bought; catch caught; choose chose chosen choice; come
came; creep crept; deal dealt; dig dug; draw drew drawn; dream dreamt; drink drank drunk; drive drove driven; eat ate
eaten; fall fell fallen; feed fed; feel felt; fight fought; find found; fly flew flown flight; forbid forbade
forbidden; forget forgot forgotten; forgive forgave forgiven; freeze froze frozen; get got gotten; give gave given; go
went gone; grow grew grown growth; hang hung; hear heard; hide hid hidden; hold held; keep kept; kneel knelt; know
knew known; lay laid; lead led; lean leant; learn learnt; leave left; lend lent; lie lain; light lit; lose lost loss;
make made; mean meant; meet met; mistake mistook mistaken; overcome overcame; pay paid payment; prove proven proof;
ride rode ridden; ring rang rung; rise rose risen; run ran; see saw seen; seek sought; sell sold sale; send sent; sew
sewn; shake shook shaken; shine shone; shoot shot; show shown; shrink shrank shrunk; sing sang sung; sink sank sunk;
sit sat; sleep slept; slide slid; speak spoke spoken speech; spend spent; spill spilt; spin spun; spring sprang
sprung; stand stood; steal stole stolen; stick stuck; strike struck; swear swore sworn; sweep swept; swim swam swum;
swing swung; take took taken; teach taught; tear tore torn; think thought; throw threw thrown; understand understood;
wake woke woken; wear wore worn; weave wove woven; weep wept; win won; wind wound; write wrote written; withdraw
withdrew withdrawn; child children; person people; man men; woman women; foot feet; tooth teeth; mouse mice; goose
geese; life lives; wife wives; leaf leaves; knife knives; half halves; shelf shelves; index indices; matrix matrices;
vertex vertices; analysis analyses analyze analyse; crisis crises; good better best; bad worse worst; marry marriage;
die died death dead; bear born birth; sick sickness; believe belief; succeed success; fail failure; advise advice;
apply application; describe description; destroy destruction; receive receipt; permit permission; explain explanation;
perform performance; collide collision; conclude conclusion; decide decision; divide division; explode explosion;
produce production; reduce reduction; solve solution; subscribe subscription; transmit transmission; recommend
recommendation; delete deletion; remove removal; compare comparison; configure configuration config; authenticate
authentication auth; argument args arg; initialize initialise init; allocate allocation alloc; parameter param params;
directory dir; repository repo; database db; environment env; message msg; document doc docs; information info;
application app; temporary temp tmp; maximum max; minimum min; previous prev; reference ref; execute execution exec;
color colour; gray grey; one 1; two 2; three 3; four 4; five 5; six 6; seven 7; eight 8; nine 9; ten 10; first 1st;
second 2nd; third 3rd; january jan; february feb; march mar; april apr; june jun; july jul; august aug; september sep
sept; october oct; november nov; december dec; monday mon; tuesday tue; wednesday wed; thursday thu; friday fri;
saturday sat; sunday sun
"""
"""One word in its forms where a stemmer does not join them; groups end with a semicolon."""

_NEAR_TEXT = """
buy purchase order get; movie film cinema; car vehicle auto; house home apartment flat; job work career occupation
profession; kid child son daughter; mother mom mum mama; father dad papa; grandmother grandma; grandfather grandpa;
parent mother father; sibling brother sister; doctor physician; photo picture image photograph pic; begin start
commence launch; end finish complete; big large huge; small little tiny; happy glad pleased excited; sad upset
unhappy; angry mad furious; scared afraid fear; trip travel journey vacation holiday; travel visit fly; visit see go;
attend go join; hike trail walk; meal food dish dinner lunch breakfast; cook bake recipe; shop store; present gift;
friend buddy pal; partner spouse husband wife boyfriend girlfriend; wed marry wedding; talk speak chat discuss; ask
request; answer reply respond response; help assist support aid; fix repair solve mend resolve; error bug fault
failure problem issue exception; crash abort; change modify edit alter update; remove delete drop erase; add insert
append include; create make build generate write; show display print render; find search locate discover; check verify
test validate; run execute launch invoke; stop halt cancel abort; quick fast speed; slow latency; method function
procedure; folder directory; file document; setting option configuration preference; password passphrase credential;
login signin; drawing painting art artwork; music song band concert; sport game match; pet dog cat animal; dog puppy;
cat kitten; study learn school class course; teacher instructor professor; exam test; college university school;
company firm business; boss manager; money cash fund; price cost fee charge; cheap inexpensive affordable; expensive
costly; baggage luggage bag suitcase; flight plane airline; reservation booking; book reserve; refund reimburse
reimbursement; name called; live reside hometown; move relocate relocation; country nation; city town; favorite
favourite prefer preference; hobby pastime activity interest; goal plan aim; want wish like; hate dislike; love enjoy
like; exercise workout gym; health healthy medical; hospital clinic; injury hurt injured; accident crash; author
writer; computer laptop pc; phone mobile cell smartphone; clothes clothing outfit dress shirt; shoe sneaker boot;
religion faith church; volunteer charity; garden plant flower; beach ocean sea; mountain hill; camp camping tent; bike
bicycle cycling; quit resign leave; hire employ recruit; win award prize trophy; compete competition contest
tournament; group community club; relationship dating single; research investigate; reason why because; ill sick; old
age year; recent latest last; main primary; incorrect wrong invalid; correct right valid; allow permit enable; disable
forbid; receive get; depart leave; arrive reach; pick choose select; keep retain save; store save persist; rename
name; repair fix
"""
"""Words that a question often has where the message has another."""


_ENDINGS = (("", ""), ("s", ""), ("es", ""), ("ies", "y"), ("d", ""), ("ed", ""), ("ing", ""), ("ing", "e"))


def forms_of(word: str) -> tuple[str, ...]:
    """Other forms of a word in lower case; none for most words, which porter stemming covers."""
    return _looked_up(word, _FORMS)


def near_words(word: str) -> tuple[str, ...]:
    """Words of about the same meaning."""
    return _looked_up(word, _NEAR)


def _looked_up(word: str, table: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """By the word, or what it is without its ending."""
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and (found := table.get(word[: len(word) - len(ending)] + instead)):
            return found
    return ()


def _table(text: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for group in text.split(";"):
        words = group.split()
        for word in words:
            found.setdefault(word, {}).update(dict.fromkeys(other for other in words if other != word))
    return {word: tuple(others) for word, others in found.items()}


_FORMS = _table(_FORMS_TEXT)
_NEAR = _table(_NEAR_TEXT)
