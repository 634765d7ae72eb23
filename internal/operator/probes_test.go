package operator

import (
	"strings"
	"testing"
	"time"
)

func TestCheckJobs_OverrunReported(t *testing.T) {
	for _, beyond := range []time.Duration{0, maxJobOverrun} {
		if err := checkJobs(beyond); err != nil {
			t.Errorf("%s beyond its limit: %v", beyond, err)
		}
	}
	if err := checkJobs(maxJobOverrun + time.Minute); err == nil || !strings.Contains(err.Error(), "1h1m0s") {
		t.Errorf("a longer one: %v", err)
	}
}
