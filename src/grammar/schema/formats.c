/* SPDX-License-Identifier: MIT
 *
 * Formats of strings, as patterns over whole texts. They are assertions here, in every draft: a schema that asks for a
 * date gets a date.
 */
#include "grammar/schema/words.h"

#define LEAP "(?:(?:[02468][048]|[13579][26])00|[0-9][0-9](?:0[48]|[2468][048]|[13579][26]))"
#define DATE \
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|" LEAP \
    "-02-29)"
#define MINUTE "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
/* A leap second is the last second of a day in universal time. With an offset it is not generated. */
#define TIME "(?:" MINUTE ":[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-]" MINUTE ")|23:59:60(?:\\.[0-9]{1,9})?(?:Z|[+-]00:00))"
#define OCTET "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define IPV4 OCTET "(?:\\." OCTET "){3}"
#define H16 "[0-9A-Fa-f]{1,4}"
#define LS32 "(?:" H16 ":" H16 "|" IPV4 ")"
#define IPV6 \
    "(?:(?:" H16 ":){6}" LS32 "|::(?:" H16 ":){5}" LS32 "|(?:" H16 ")?::(?:" H16 ":){4}" LS32 "|(?:(?:" H16 \
    ":){0,1}" H16 ")?::(?:" H16 ":){3}" LS32 "|(?:(?:" H16 ":){0,2}" H16 ")?::(?:" H16 ":){2}" LS32 "|(?:(?:" H16 \
    ":){0,3}" H16 ")?::" H16 ":" LS32 "|(?:(?:" H16 ":){0,4}" H16 ")?::" LS32 "|(?:(?:" H16 ":){0,5}" H16 ")?::" H16 \
    "|(?:(?:" H16 ":){0,6}" H16 ")?::)"
#define LABEL "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define ATEXT "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,64}"
#define ESCAPED "%[0-9A-Fa-f]{2}"
#define PCHAR "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|" ESCAPED ")"
#define QUERY "(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|" ESCAPED ")*"
#define HOST "(?:\\[" IPV6 "\\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|" ESCAPED ")*)"
#define AUTHORITY "(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|" ESCAPED ")*@)?" HOST "(?::[0-9]*)?"
#define PATH "(?:/" PCHAR "*)*"
#define HIER "(?://" AUTHORITY PATH "|/(?:" PCHAR "+" PATH ")?|" PCHAR "+" PATH "|)"
#define HEX "[0-9A-Fa-f]"
#define WIDE \
    "\\u{A0}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFEF}\\u{10000}-\\u{1FFFD}\\u{20000}-\\u{2FFFD}\\u{30000}-\\u{3FFFD}"
#define REF_CHAR(wide) "(?:[A-Za-z0-9._~!$&'()*+,;=@" wide "-]|" ESCAPED ")" /* for a first path step: no colon */
#define IPCHAR "(?:[A-Za-z0-9._~!$&'()*+,;=:@" WIDE "-]|" ESCAPED ")"
#define IQUERY "(?:[A-Za-z0-9._~!$&'()*+,;=:@/?" WIDE "\\u{E000}-\\u{F8FF}-]|" ESCAPED ")*"
#define IFRAGMENT "(?:[A-Za-z0-9._~!$&'()*+,;=:@/?" WIDE "-]|" ESCAPED ")*"
#define IHOST "(?:\\[" IPV6 "\\]|(?:[A-Za-z0-9._~!$&'()*+,;=" WIDE "-]|" ESCAPED ")*)"
#define IAUTHORITY "(?:(?:[A-Za-z0-9._~!$&'()*+,;=:" WIDE "-]|" ESCAPED ")*@)?" IHOST "(?::[0-9]*)?"
#define IPATH "(?:/" IPCHAR "*)*"
#define IHIER "(?://" IAUTHORITY IPATH "|/(?:" IPCHAR "+" IPATH ")?|" IPCHAR "+" IPATH "|)"
#define SCHEME "[A-Za-z][A-Za-z0-9+.-]*:"
#define URI SCHEME HIER "(?:\\?" QUERY ")?(?:#" QUERY ")?"
#define IRI SCHEME IHIER "(?:\\?" IQUERY ")?(?:#" IFRAGMENT ")?"
#define RELATIVE \
    "(?://" AUTHORITY PATH "|/(?:" PCHAR "+" PATH ")?|" REF_CHAR("") "+" PATH "|)(?:\\?" QUERY ")?(?:#" QUERY ")?"
#define IRELATIVE \
    "(?://" IAUTHORITY IPATH "|/(?:" IPCHAR "+" IPATH ")?|" REF_CHAR(WIDE) "+" IPATH "|)(?:\\?" IQUERY \
                                                                           ")?(?:#" IFRAGMENT ")?"
#define VARCHAR "(?:[A-Za-z0-9_]|" ESCAPED ")"
#define VARSPEC VARCHAR "(?:\\.?" VARCHAR ")*(?:\\*|:[1-9][0-9]{0,3})?"
#define POINTER "(?:/(?:[^~/]|~[01])*)*"
#define WIDE_ATEXT "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\u{A1}-\\u{1FFF}\\u{3001}-\\u{D7FF}-]{1,64}"
#define WIDE_LABEL "[\\p{L}\\p{N}](?:[\\p{L}\\p{N}-]{0,61}[\\p{L}\\p{N}])?"

/* Patterns: most of those that are valid with the flag u, with groups up to three deep. */
#define RANGES "0-[0-9]|1-[1-9]|a-[a-z]|b-[b-z]|A-[A-Z]|B-[B-Z]|[2-8]-9|[c-y]-z|[C-Y]-Z"
#define ESCAPE "\\\\[dDwWsStnrfv^$\\\\.*+?()\\[\\]{}|/]"
#define CLASS "\\[\\^?-?(?:" RANGES "|[^\\\\\\]\\[^-]|" ESCAPE ")(?:" RANGES "|[^\\\\\\]\\[-]|" ESCAPE "|\\\\-)*-?\\]"
#define ONE "[^\\\\^$.*+?()\\[\\]{}|]|\\.|" ESCAPE "|" CLASS
#define COUNT "(?:[0-9]|[1-9][0-9])(?:,|,[1-9][0-9]{2})?|0,[0-9]|1,[1-9]|2,[2-9]|3,[3-9]|[4-8],9|[0-9],[1-9][0-9]"
#define TIMES "(?:(?:[*+?]|\\{(?:" COUNT ")\\})\\?" "?)?"
#define GROUP(inside) "\\((?:\\?:)?" inside "\\)"
#define LOOK(inside) "\\(\\?<?[=!]" inside "\\)"
#define REGEX_0 "(?:(?:" ONE ")" TIMES "|[$^|]|\\\\[bB])*"
#define REGEX_1 "(?:(?:" ONE "|" GROUP(REGEX_0) ")" TIMES "|[$^|]|\\\\[bB]|" LOOK(REGEX_0) ")*"
#define REGEX_2 "(?:(?:" ONE "|" GROUP(REGEX_1) ")" TIMES "|[$^|]|\\\\[bB]|" LOOK(REGEX_0) ")*"
#define REGEX_3 "(?:(?:" ONE "|" GROUP(REGEX_2) ")" TIMES "|[$^|]|\\\\[bB]|" LOOK(REGEX_0) ")*"

static const struct {
    const char *name, *pattern;
} formats[] = {
    {"date", DATE},
    {"time", TIME},
    {"date-time", DATE "T" TIME},
    {"duration",
     "P(?:[0-9]{1,9}W|(?:[0-9]{1,9}Y(?:[0-9]{1,9}M(?:[0-9]{1,9}D)?)?|[0-9]{1,9}M(?:[0-9]{1,9}D)?|[0-9]{1,9}D)"
     "(?:T(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S))?"
     "|T(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S))"},
    {"uuid", HEX "{8}-" HEX "{4}-" HEX "{4}-" HEX "{4}-" HEX "{12}"},
    {"email", ATEXT "(?:\\." ATEXT ")*@" LABEL "(?:\\." LABEL "){1,7}"},
    {"hostname", LABEL "(?:\\." LABEL "){0,7}"},
    {"ipv4", IPV4},
    {"ipv6", IPV6},
    {"uri", URI},
    {"uri-reference", "(?:" URI "|" RELATIVE ")"},
    {"iri", IRI},
    {"iri-reference", "(?:" IRI "|" IRELATIVE ")"},
    {"uri-template", "(?:[^\\u{0}-\\u{20}\"'%<>\\\\^`{|}\\u{7F}-\\u{9F}]|" ESCAPED "|\\{[+#./;?&=,!@|]?" VARSPEC
                     "(?:," VARSPEC ")*\\})*"},
    {"json-pointer", POINTER},
    {"relative-json-pointer", "(?:0|[1-9][0-9]{0,8})(?:#|" POINTER ")"},
    {"idn-email", WIDE_ATEXT "(?:\\." WIDE_ATEXT ")*@" WIDE_LABEL "(?:\\." WIDE_LABEL "){1,7}"},
    {"regex", REGEX_3},
};

const char *format_pattern(struct bytes name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (bytes_equal(name, formats[i].name)) return formats[i].pattern;
    return NULL;
}
