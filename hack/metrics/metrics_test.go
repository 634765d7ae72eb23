package main

import (
	"io"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/controller/metric"
)

func TestTheDocumentSaysWhatTheCodeSays(t *testing.T) {
	if err := run("../..", true, io.Discard); err != nil {
		t.Error(err)
	}
}

func TestARowSaysWhatBoundsALabel(t *testing.T) {
	got := metrics([]metric.Definition{{Name: "wmco_a_total", Type: metric.TypeCounter, Help: "All.", Labels: []metric.Label{
		{Name: "reason", Values: "reasons of conditions.md", AtMost: 128}, {Name: "node", Values: "one for each node"}}}})
	want := "| `wmco_a_total` | counter | `reason`: reasons of [conditions.md](conditions.md), at most 128<br>`node`: one for each node | All. |\n"
	if !strings.HasSuffix(got, want) {
		t.Errorf("got %s", got)
	}
}

func TestARowSaysWhyAnExpressionHasNoData(t *testing.T) {
	got := expressions([]expression{{Where: "console", Shows: "CPU", Expr: `a{b=~"c|d"}`, Value: 1},
		{Where: "console", Shows: "load", Expr: "node_load1", None: "Windows has none."}})
	want := "| console | CPU | `a{b=~\"c\\|d\"}` | yes |\n| console | load | `node_load1` | no. Windows has none. |\n"
	if !strings.HasSuffix(got, want) {
		t.Errorf("got %s", got)
	}
}

func TestADocumentKeepsWhatIsWrittenByHand(t *testing.T) {
	const before = "a\n" + begin + "\nold\n" + end + "\nb\n" + begin + "\n" + end + "\nc\n"
	const after = "a\n" + begin + "\n\n1\n" + end + "\nb\n" + begin + "\n\n2\n" + end + "\nc\n"
	got, err := rewrite([]byte(before), "1", "2")
	if err != nil || string(got) != after {
		t.Errorf("got %q, error %v", got, err)
	}
	for name, document := range map[string]string{
		"without markers": "a\n", "with one pair": "a\n" + begin + "\n" + end + "\n",
		"with three": before + begin + "\n" + end + "\n", "with an end missing": "a\n" + begin + "\n" + begin + "\n" + end + "\n",
	} {
		t.Run("one "+name+" is refused", func(t *testing.T) {
			if got, err := rewrite([]byte(document), "1", "2"); err == nil {
				t.Errorf("got %q", got)
			}
		})
	}
}
