package policy

import (
	"strings"
	"testing"
	"time"
)

func TestANodeThatHasNotWorkedForTooLongIsSaidToHaveFailed(t *testing.T) {
	c := newDisruptionCase()
	c.proven()
	c.broken("h1", time.Hour)
	summary := SummarizeDisruptions(c.NodePool, c.settings, versionAfter, noon)
	if summary.Failed != 1 || !strings.Contains(summary.Text, "Failed: node-h1.") {
		t.Errorf("got %+v", summary)
	}
}
