package main

import "regexp"

// source is the kind of text that a check counts in.
type source string

// The sources, with the unit of their size.
const (
	sourceComments source = "comments"  // words
	sourceNames    source = "functions" // functions
	sourceStrings  source = "strings"   // strings with three words or more
	sourceProse    source = "prose"     // words of Markdown without code and tables
	sourceLines    source = "lines"     // lines of prose
)

// check is a count.
type check struct {
	name    string
	source  source
	pattern *regexp.Regexp // matches the counted text; nil for checks that do not count words
	final   float64        // the permanent limit of a directory per 10,000
}

func newCheck(name string, source source, pattern string, final float64) check {
	return check{name: name, source: source, pattern: regexp.MustCompile(`(?i)\b(?:` + pattern + `)\b`), final: final}
}

// The checks that do not count words.
const (
	checkOneWordNames  = "one-word function names"
	checkDeclarations  = "private declarations"
	checkLongLines     = "lines over 80 columns"
	checkLongPages     = "words beyond 2,500 per page"
	maxColumns         = 80
	maxPageWords       = 2500
	minWordsOfSentence = 3
)

// checks contains all checks. The counts per 10,000 in cert-manager, source-controller, Karpenter and k0sctl are: "what"
// 2-5, "who" 0-5, "tell" 0-5, "ask" 0-4, "one that" 3-10, "of which" 3-9, "go on" 1-8, pronouns 80-136, private words
// 10-19, one-word function names 100-400, long lines 800.
var checks = []check{
	newCheck("what", sourceComments, `what`, 20),
	newCheck("who, nobody", sourceComments, `who|whom|whose|whoever|(?:no|some|every|any)body`, 6),
	newCheck("tell, say", sourceComments, `tells?|told|telling|says?|said|saying`, 8),
	newCheck("ask, look, bring", sourceComments, `ask(?:s|ed|ing)?|look(?:s|ed|ing)?|bring(?:s|ing)?|brought`, 8),
	newCheck("one that, those, others", sourceComments,
		`ones? (?:that|of|which|is|has|whose)|(?:those|that) (?:of|that|who|which|with)|others`, 12),
	newCheck("of which, is to", sourceComments, `(?:of|as|from|to|by|in|for|with|on|at|over) which|(?:is|are|was|were) to \w+`, 9),
	newCheck("go on, give back, as it is", sourceComments,
		`(?:go(?:es)?|went|gone) on|lets? (?:\w+ ){0,2}go|g(?:ive|ives|iven|ave) (?:\w+ ){0,3}back|puts? (?:\w+ ){0,3}back|(?:take[sn]?|took) (?:\w+ ){0,2}(?:away|over)|as (?:it|they) (?:is|are|was|were)`, 4),
	newCheck("pronouns", sourceComments, `it|its|they|them|their`, 170),
	newCheck("private words", sourceComments, `places?|rooms?|ways?|turns?|obstacles?|disturb\w*|whole|present|anew|mend\w*`, 18),
	{name: checkOneWordNames, source: sourceNames, final: 500},
	{name: checkDeclarations, source: sourceNames, final: 0},
	newCheck("strings", sourceStrings, `what|tells?|told|says?|said|(?:some|no)body|who(?:ever)?|goes on|looks again|ask(?:s|ed)?|anew|mend\w*|turn|gi?ves? back|given back|puts? back|for good|disturb\w*|pods (?:do not )?feel|at work|in order|of its own`, 0),
	newCheck("prose: what", sourceProse, `what`, 10),
	newCheck("prose: pronouns", sourceProse, `it|its|they|them|their`, 150),
	{name: checkLongLines, source: sourceLines, final: 0},
	{name: checkLongPages, source: sourceProse, final: 0},
}

// freeNames contains one-word function names that every Go developer knows.
var freeNames = map[string]bool{"main": true, "init": true, "run": true, "start": true, "stop": true, "close": true, "read": true, "write": true,
	"get": true, "list": true, "string": true, "error": true, "apply": true, "validate": true, "reconcile": true}

// privateConstant matches the beginning of a constant that has a standard name: max or min. privateFunction matches
// the first word of a function for which a technical verb exists.
var (
	privateConstant = regexp.MustCompile(`^(?:[mM]ost|[lL]ongest|[lL]east)[A-Z]`)
	privateFunction = regexp.MustCompile(`^(?:[tT]ell|[sS]ay|[aA]sk|[lL]ook|[bB]ring|[nN]ote|[gG]ive|[lL]et)(?:s?[A-Z]|s?$)`)
	oneWord         = regexp.MustCompile(`^[a-z0-9_]+$`)
)
