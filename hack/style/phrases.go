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
}

// words returns the pattern of a phrase. Its words may be on two lines.
func words(phrase string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b` + strings.ReplaceAll(phrase, " ", `\s+`) + `\b`)
}
