/* SPDX-License-Identifier: MIT
 *
 * Formats of strings, as patterns over whole texts. They are assertions here, in every draft: who asks for a date wants one.
 */
#include "grammar/schema_words.h"

#define LEAP "(?:(?:[02468][048]|[13579][26])00|[0-9][0-9](?:0[48]|[2468][048]|[13579][26]))"
#define DATE \
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|" LEAP "-02-29)"
#define MINUTE "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
/* A leap second is the last of a day in universal time; with an offset it is not written. */
#define TIME "(?:" MINUTE ":[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-]" MINUTE ")|23:59:60(?:\\.[0-9]{1,9})?(?:Z|[+-]00:00))"
#define OCTET "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define IPV4 OCTET "(?:\\." OCTET "){3}"
#define H16 "[0-9A-Fa-f]{1,4}"
#define LS32 "(?:" H16 ":" H16 "|" IPV4 ")"
#define IPV6 \
    "(?:(?:" H16 ":){6}" LS32 "|::(?:" H16 ":){5}" LS32 "|(?:" H16 ")?::(?:" H16 ":){4}" LS32 "|(?:(?:" H16 ":){0,1}" H16 ")?::(?:" H16 ":){3}" LS32 \
    "|(?:(?:" H16 ":){0,2}" H16 ")?::(?:" H16 ":){2}" LS32 "|(?:(?:" H16 ":){0,3}" H16 ")?::" H16 ":" LS32 "|(?:(?:" H16 ":){0,4}" H16 ")?::" LS32 \
    "|(?:(?:" H16 ":){0,5}" H16 ")?::" H16 "|(?:(?:" H16 ":){0,6}" H16 ")?::)"
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

static const struct {
    const char *name, *pattern;
} formats[] = {
    {"date", DATE},
    {"time", TIME},
    {"date-time", DATE "T" TIME},
    {"duration", "P(?:[0-9]{1,9}W|(?:[0-9]{1,9}Y(?:[0-9]{1,9}M(?:[0-9]{1,9}D)?)?|[0-9]{1,9}M(?:[0-9]{1,9}D)?|[0-9]{1,9}D)"
                 "(?:T(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S))?"
                 "|T(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S))"},
    {"uuid", HEX "{8}-" HEX "{4}-" HEX "{4}-" HEX "{4}-" HEX "{12}"},
    {"email", ATEXT "(?:\\." ATEXT ")*@" LABEL "(?:\\." LABEL "){1,7}"},
    {"hostname", LABEL "(?:\\." LABEL "){0,7}"},
    {"ipv4", IPV4},
    {"ipv6", IPV6},
    {"uri", "[A-Za-z][A-Za-z0-9+.-]*:" HIER "(?:\\?" QUERY ")?(?:#" QUERY ")?"},
    {"json-pointer", "(?:/(?:[^~/]|~[01])*)*"},
};

const char *format_pattern(struct bytes name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (bytes_equal(name, formats[i].name)) return formats[i].pattern;
    return NULL;
}
