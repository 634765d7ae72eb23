package main

import (
	"regexp"
	"strings"
)

// phrases must not come back: most are German sentences in English words.
var phrases = []struct {
	form    *regexp.Regexp
	instead string
}{
	{words(`tells? whether`), "reports whether"},
	{words(`(?:is|are) told`), "is reported, is passed, is given, learns"},
	{words(`(?:that|which|who) (?:is|are) none`), `an adjective before the noun: "an invalid port" for a port that is no port`},
	{words(`for ever`), "forever"},
	{words(`otherwise than`), "differently from, other than by"},
	{words(`to be had`), "available"},
	{words(`(?:is|are|was|were) (?:that|those) of`), `"belongs to", or name it: "x is the version of the header" for "x is that of the header"`},
	{words(`returns (?:that|those) of`), `name it: "returns the address of" for "returns that of"`},
	{words(`whom`), "which user, the user that"},
	{words(`(?:is|are) none of`), "is not one of, is not among, does not belong to"},
	{words(`(?:but|and|which) none of an?`), "no"},
	{words(`none of an? [a-z]+ needs`), `"a node does not need" for "none of a node needs"`},
	{words(`told of`), "reported, passed"},
	{words(`what of (?:it|a|the|whom)`), `"the parts of it that"`},
	{words(`as good as none`), "counts as missing"},
	{words(`goes without`), "has none"},
	{words(`the word of another`), "a report of another"},
	{words(`take[sn]? for none`), "ignore"},
	{words(`puts? into words`), "explains, turns into a message"},
	{words(`(?:is|are) not told`), "is not reported, does not learn"},
	{regexp.MustCompile(`(?:^|[.:] |// |/\* )Who [a-z]+ (?:[a-z' ]+ )?(?:is|gets|can|may|has|could|reads|keeps) `),
		`a noun as the subject: "anyone who", "a host's administrator"`},
}

// words returns the pattern of a phrase. Its words may be on two lines.
func words(phrase string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b` + strings.ReplaceAll(phrase, " ", `\s+`) + `\b`)
}
