package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestLastLines_KeepsMostRecentLog(t *testing.T) {
	lines := &lastLines{}
	for i := range maxLines + 5 {
		lines.newLogger().Info(fmt.Sprintf("line %d", i))
	}
	lines.newLogger().WithName("cache").Error(errors.New(strings.Repeat("é", maxLineLength)), "the last one")
	got := strings.Split(lines.String(), "\n")
	if len(got) != 1+maxLines || got[0] != "6 earlier lines" || !strings.Contains(got[1], "line 6") {
		t.Errorf("%d lines: %q and %q first", len(got), got[0], got[1])
	}
	if last := got[len(got)-1]; !strings.Contains(last, "the last one") || len(last) > maxLineLength+len("…") {
		t.Errorf("the last of them is %q", last)
	}
}
