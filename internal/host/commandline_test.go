package host_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestCommandLine(t *testing.T) {
	// The quoting rules are from "Parsing C++ command-line arguments".
	for name, c := range map[string]struct {
		words []string
		line  string
	}{
		"plain words stay as they are": {[]string{`C:\k\kubelet.exe`, "--v=4"}, `C:\k\kubelet.exe --v=4`},
		"a word with a space is quoted": {[]string{`C:\Program Files\x.exe`, "a b"},
			`"C:\Program Files\x.exe" "a b"`},
		"an empty word is kept":                    {[]string{"x", "", "y"}, `x "" y`},
		"a quote is escaped":                       {[]string{`say "hi"`}, `"say \"hi\""`},
		"backslashes before a quote are doubled":   {[]string{`a\\"b`}, `"a\\\\\"b"`},
		"backslashes before the end are doubled":   {[]string{`C:\a b\`}, `"C:\a b\\"`},
		"backslashes elsewhere are left alone":     {[]string{`C:\a b\c\\d`}, `"C:\a b\c\\d"`},
		"a last backslash without spaces is plain": {[]string{`C:\k\`}, `C:\k\`},
		"a tab and a line break are quoted":        {[]string{"a\tb", "c\nd"}, "\"a\tb\" \"c\nd\""},
		"no words are an empty line":               {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := host.CommandLine(c.words...); got != c.line {
				t.Errorf("got  %s\nwant %s", got, c.line)
			}
			if got := host.SplitCommandLine(c.line); !slices.Equal(got, c.words) {
				t.Errorf("split: got %q, want %q", got, c.words)
			}
		})
	}
}

func TestSplitCommandLine(t *testing.T) {
	for line, want := range map[string][]string{
		`a   b	c `:                     {"a", "b", "c"},
		`"a b" c`:                      {"a b", "c"},
		`a"b c"d`:                      {"ab cd"},
		`a\\\"b`:                       {`a\"b`},
		`"a\\" b`:                      {`a\`, "b"},
		`a\\b`:                         {`a\\b`},
		`"a""b"`:                       {`a"b`},
		`"not closed`:                  {"not closed"},
		`--x="C:\Program Files\k" "" `: {`--x=C:\Program Files\k`, ""},
		"":                             nil,
	} {
		t.Run(line, func(t *testing.T) {
			if got := host.SplitCommandLine(line); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestCommandLine_SplitRestoresWords(t *testing.T) {
	// Characters with a special meaning are drawn much more often than the rest.
	word := rapid.OneOf(rapid.StringOf(rapid.RuneFrom([]rune("ab \t\n\v\\\"'-=äß"))), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(word).Draw(t, "words")
		line := host.CommandLine(words...)
		if got := host.SplitCommandLine(line); !slices.Equal(got, words) {
			t.Fatalf("line %s\ngot  %q\nwant %q", line, got, words)
		}
	})
}

func FuzzSplitCommandLine(f *testing.F) {
	for _, seed := range []string{``, `a b`, `"a b" c`, `a\\\"b`, `"a""b`, `\\`, `"`, `"\`, "a\vb"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := host.SplitCommandLine(line)
		if again := host.SplitCommandLine(host.CommandLine(words...)); !slices.Equal(again, words) {
			t.Errorf("%q: words %q become %q", line, words, again)
		}
		if blank := strings.Trim(line, " \t") == ""; blank != (len(words) == 0) {
			t.Errorf("%q: %d words", line, len(words))
		}
	})
}
