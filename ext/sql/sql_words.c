/*
 * sql_words.c - the other forms of common English words: plurals, -s, -ed, -ing.
 *
 * Forms are made from a list of base words by rule, and looked up in what the rules make; nothing
 * is cut off a word that is not listed. So only real words come out, and "string", "bed" or "news"
 * have no other forms. What the rules would get wrong stands in the list of exceptions.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql_words.h"

enum { BASE_MAX = SQL_WORD_MAX - 4 }; /* room for a doubled letter and -ing */

// Regular verbs, apart from those of the lists below.
static const char verbs[] =
    "accept access achieve add adjust admire adopt advise affect agree allow analyze announce "
    "answer apologize appear apply appreciate approve argue arrange arrive ask assign assume "
    "attach "
    "attack attempt attend avoid bake balance ban believe belong boil book borrow bother bounce "
    "brush call camp cancel care carry cause celebrate challenge change charge chat check choke "
    "claim clean clear click climb close collect comment communicate compare compile complain "
    "complete compute concern confirm connect consider consist construct contact contain continue "
    "cook copy correct count cover crash crawl create cry cure cycle damage dance decide declare "
    "define delay delete deliver depend deploy describe design desire destroy detect develop die "
    "disagree disappear discover discuss dislike display divide download drag dress drop earn edit "
    "email embed enable encourage end enjoy enter erase escape estimate examine execute exercise "
    "exist expand expect explain explore export express extend extract fail fasten fetch fill "
    "filter finish fix flash float flush focus fold follow force form frame gain gather generate "
    "grab graduate greet guard guess guide handle hang happen hate heal help hike hope hug hunt "
    "identify ignore imagine implement import improve include increase index inform insert install "
    "invent invite join joke jog jump kill kiss knock label land laugh launch learn lie like "
    "link list listen live load lock log look love maintain manage map mark marry match matter "
    "measure meditate mention merge migrate miss mix modify monitor mount move multiply name need "
    "nod note notice obtain offer open order organize own pack paint park parse pass pause perform "
    "phone pick pin place plan plant play point pour practice praise pray prepare present press "
    "prevent print process produce promise propose protect prove publish pull push query "
    "question race rain reach realize receive recall recognize recommend record recover reduce "
    "refuse reject relax release remember remind remove rename rent repair repeat replace reply "
    "report request require rescue research resolve respond rest restore retire retrieve retry "
    "return review rob rush sail save scan schedule scream search seem select separate serve "
    "settle share shop shout sign signal ski skip smell smile sort spell start stare stay step "
    "stop "
    "store study subscribe succeed suffer suggest supply support surprise suspect switch sync "
    "tag talk tap taste test thank tie touch trace track trade train translate travel treat trip "
    "trust try turn type unlock update upgrade upload use validate verify visit volunteer vote "
    "wait "
    "walk want warn wash waste watch water wave weigh welcome whisper wish wonder work worry wrap "
    "yell zip ";

// Regular verbs of more than one syllable that double the last letter all the same.
static const char doubled[] = "admit commit compel control debug equip format occur omit permit "
                              "prefer program refer regret rebut submit transfer unplug ";

// Regular nouns that are no verbs above.
static const char nouns[] =
    "account activity actor address agent airport algorithm animal apartment apple architecture "
    "argument army array art article artist aunt author baby bag ball band bank baseline beach "
    "bedroom benchmark bicycle bike bill bird birthday block boat body bone boss bottle bowl box "
    "boy branch brother browser budget buffer bug building bus business button cache cake camera "
    "campaign car card career cat category cell chair channel chapter character chart church "
    "circle city class classroom client clinic clock cloud coach coat code colleague collection "
    "college color column command community company competition component computer concert "
    "condition conference constraint container conversation cookie corner country couple course "
    "cousin crate cup customer database dashboard date daughter day deadline debt decision defect "
    "degree dependency desk detail device diet dinner directory discussion disease doctor document "
    "dog dollar door dream driver duty editor effect egg element embedding employee engine "
    "engineer "
    "entity entry error evening event example exam exception expense experience expert eye face "
    "factor family fan farm farmer father feature fee field file flag flight floor flower folder "
    "forest friend friendship function game garden gift girl goal grade grandmother grandfather "
    "graph group guest guitar habit hand hat header hobby holiday home hospital hotel hour house "
    "husband idea image incident industry instance instrument interface interview invoice issue "
    "item job journey key kid kitchen lab lake language laptop law lawyer layer leader lesson "
    "letter "
    "library limit line link loan machine manager market meal medicine meeting member memory "
    "message metric minute mistake mobile model module moment month morning mother mountain movie "
    "museum neighbor network night node number nurse object ocean office operation operator "
    "opinion option page painting parameter parent park parser partner party password patch path "
    "patient pattern payment pen pet photo piano picture pipeline pizza platform player poem poet "
    "policy port position prescription president price prize problem product professor project "
    "prompt property protocol purchase puzzle quarter race reason recipe region relation "
    "relationship repository requirement reservation resource restaurant result road role room "
    "route row rule salary sandwich sister scene school scientist score script season second "
    "secret sensor sentence server service session shirt shoe site sketch skill snack solution "
    "song sport stack stage station story stranger street student style subject suggestion "
    "summary symbol symptom system table task tax taxi teacher team teammate technique template "
    "thread ticket token tool topic tour town toy tree trigger uncle university user vacation "
    "value "
    "variable vector vehicle version video view village visitor wall wallet website wedding week "
    "weekend window winner word worker workflow workshop writer year zone ";

// All forms of a word, parted by spaces; words by commas.
static const char exceptions[] =
    "be is are was were been being,have has had having,do does did done doing,go goes went gone "
    "going,say says said saying,get gets got gotten getting,make makes made making,know knows knew "
    "known knowing,think thinks thought thinking,take takes took taken taking,see sees saw seen "
    "seeing,come comes came coming,give gives gave given giving,find finds found finding,tell "
    "tells "
    "told telling,become becomes became becoming,leave leaves left leaving,feel feels felt feeling,"
    "put puts putting,bring brings brought bringing,begin begins began begun beginning,keep keeps "
    "kept keeping,hold holds held holding,write writes wrote written writing,rewrite rewrites "
    "rewrote rewritten rewriting,stand stands stood standing,hear hears heard hearing,let lets "
    "letting,mean means meant meaning,set sets setting,reset resets resetting,meet meets met "
    "meeting,run runs ran running,pay pays paid paying,sit sits sat sitting,speak speaks spoke "
    "spoken speaking,lead leads led leading,read reads reading,grow grows grew grown growing,lose "
    "loses lost losing,fall falls fell fallen falling,send sends sent sending,build builds built "
    "building,rebuild rebuilds rebuilt rebuilding,understand understands understood understanding,"
    "draw draws drew drawn drawing,break breaks broke broken breaking,spend spends spent spending,"
    "cut cuts cutting,rise rises rose risen rising,drive drives drove driven driving,buy buys "
    "bought "
    "buying,wear wears wore worn wearing,choose chooses chose chosen choosing,eat eats ate eaten "
    "eating,sleep sleeps slept sleeping,fly flies flew flown flying,forget forgets forgot "
    "forgotten "
    "forgetting,catch catches caught catching,teach teaches taught teaching,sell sells sold "
    "selling,"
    "fight fights fought fighting,throw throws threw thrown throwing,swim swims swam swum swimming,"
    "sing sings sang sung singing,drink drinks drank drunk drinking,win wins won winning,hit hits "
    "hitting,hurt hurts hurting,ride rides rode ridden riding,shoot shoots shot shooting,steal "
    "steals stole stolen stealing,quit quits quitting,split splits splitting,"
    "man men,woman women,child children,person people,foot feet,tooth teeth,mouse mice,goose geese,"
    "life lives,wife wives,knife knives,leaf leaves,shelf shelves,half halves,wolf wolves,hero "
    "heroes,potato potatoes,tomato tomatoes,analysis analyses,basis bases,crisis crises,thesis "
    "theses,hypothesis hypotheses,matrix matrices,vertex vertices,criterion criteria,phenomenon "
    "phenomena,quiz quizzes,";

static int is_vowel(char c)
{
    return c && strchr("aeiou", c) != NULL;
}

static int ends_in(const char *s, size_t n, const char *end)
{
    size_t k = strlen(end);
    return n >= k && memcmp(s + n - k, end, k) == 0;
}

static void put(sql_word *out, const char *s, size_t n, const char *end)
{
    memcpy(out->s, s, n);
    memcpy(out->s + n, end, strlen(end) + 1);
}

/* Plural, or third person. */
static void with_s(sql_word *out, const char *s, size_t n, int verb)
{
    char last = s[n - 1];
    if (last == 'y' && !is_vowel(s[n - 2])) {
        put(out, s, n - 1, "ies");
    } else if (strchr("sxz", last) || ends_in(s, n, "ch") || ends_in(s, n, "sh") ||
               (verb && last == 'o')) {
        put(out, s, n, "es");
    } else {
        put(out, s, n, "s");
    }
}

/* stop, plan: one syllable that ends consonant, vowel, consonant. */
static int doubles(const char *s, size_t n)
{
    size_t groups = 0;
    for (size_t i = 0; i < n; i++) {
        groups += (is_vowel(s[i]) || (s[i] == 'y' && i)) &&
                  !(i && (is_vowel(s[i - 1]) || s[i - 1] == 'y'));
    }
    return groups == 1 && n >= 3 && !is_vowel(s[n - 1]) && !strchr("wxy", s[n - 1]) &&
           is_vowel(s[n - 2]) && !is_vowel(s[n - 3]);
}

static size_t verb_forms(const char *s, size_t n, int twice, sql_word out[SQL_WORD_FORMS])
{
    char last = s[n - 1], stem[SQL_WORD_MAX];
    put(&out[0], s, n, "");
    with_s(&out[1], s, n, 1);
    memcpy(stem, s, n);
    if (twice || doubles(s, n)) {
        stem[n++] = last;
    }
    if (ends_in(stem, n, "ie")) {
        put(&out[2], stem, n, "d");
        put(&out[3], stem, n - 2, "ying");
    } else if (last == 'e') {
        put(&out[2], stem, n, "d");
        put(&out[3], stem, ends_in(stem, n, "ee") ? n : n - 1, "ing");
    } else if (last == 'y' && !is_vowel(stem[n - 2])) {
        put(&out[2], stem, n - 1, "ied");
        put(&out[3], stem, n, "ing");
    } else {
        put(&out[2], stem, n, "ed");
        put(&out[3], stem, n, "ing");
    }
    return 4;
}

static int among(const sql_word *forms, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(forms[i].s, word) == 0) {
            return 1;
        }
    }
    return 0;
}

enum list { VERBS, DOUBLED, NOUNS, EXCEPTIONS };

/* The forms of the entry s[0..n), 0 where they do not hold the word. */
static size_t forms_of(enum list list, const char *s, size_t n, const char *word,
                       sql_word out[SQL_WORD_FORMS])
{
    size_t count = 0;
    if (list == EXCEPTIONS) {
        for (size_t at = 0, len; at < n && count < SQL_WORD_FORMS; at += len + 1) {
            for (len = 0; at + len < n && s[at + len] != ' '; len++) {
            }
            put(&out[count++], s + at, len, "");
        }
    } else if (*s == *word && n <= BASE_MAX) { // the rules leave the first letter alone
        if (list == NOUNS) {
            put(&out[count++], s, n, "");
            with_s(&out[count++], s, n, 0);
        } else {
            count = verb_forms(s, n, list == DOUBLED, out);
        }
    }
    return among(out, count, word) ? count : 0;
}

size_t sql_word_forms(const char *word, sql_word out[SQL_WORD_FORMS])
{
    static const struct {
        const char *words;
        char end;
    } lists[] = {[VERBS] = {verbs, ' '},
                 [DOUBLED] = {doubled, ' '},
                 [NOUNS] = {nouns, ' '},
                 [EXCEPTIONS] = {exceptions, ','}};
    size_t count = 0;
    for (int list = VERBS; list <= EXCEPTIONS; list++) {
        const char *s = lists[list].words, *end;
        for (; (end = strchr(s, lists[list].end)) != NULL; s = end + 1) {
            sql_word forms[SQL_WORD_FORMS];
            size_t n = forms_of((enum list)list, s, (size_t)(end - s), word, forms);
            for (size_t i = 0; i < n && count < SQL_WORD_FORMS; i++) {
                if (strcmp(forms[i].s, word) != 0 && !among(out, count, forms[i].s)) {
                    out[count++] = forms[i];
                }
            }
        }
    }
    return count;
}
