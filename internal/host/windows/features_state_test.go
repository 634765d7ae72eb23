package windows

import (
	"errors"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestFeatureState(t *testing.T) {
	for state, want := range map[dismState]host.FeatureState{
		0: host.FeatureDisabled, 1: host.FeatureDisablePending, 2: host.FeatureDisabled, 3: host.FeatureDisabled,
		4: host.FeatureEnabled, 5: host.FeatureEnablePending, 6: host.FeatureDisabled, 7: host.FeatureDisabled,
	} {
		if got, err := featureState(state); got != want || err != nil {
			t.Errorf("%d: got %s, %v, want %s", state, got, err, want)
		}
	}
	if got, err := featureState(8); got != host.FeatureUnknown || err == nil {
		t.Errorf("8: got %s, %v", got, err)
	}
}

func TestDISMResults(t *testing.T) {
	t.Run("a change that waits for a restart is no failure", func(t *testing.T) {
		for _, r := range []result{resultOK, 1, resultRestartNeeded, resultRestartNeededWin32} {
			if r.isFailure() {
				t.Errorf("0x%08x", uint32(r))
			}
		}
	})
	t.Run("a feature that is not known is not there", func(t *testing.T) {
		if err := error(&dismError{call: "DismEnableFeature", result: resultUnknownFeature}); !errors.Is(err,
			host.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("other failures are not taken for that, and say what to do", func(t *testing.T) {
		for _, r := range []result{resultNotFound, resultElevationRequired, resultNoSource, resultRestartFirst,
			resultAborted, 0x80004005} {
			err := error(&dismError{call: "DismEnableFeature", result: r, message: "what DISM says"})
			if !r.isFailure() || errors.Is(err, host.ErrNotExist) {
				t.Errorf("0x%08x: %v", uint32(r), err)
			}
			for _, part := range []string{"DismEnableFeature failed with 0x8", "(what DISM says); "} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in %q", part, err)
				}
			}
		}
	})
	t.Run("missing files of a feature are reported, also if Windows Update refuses the session", func(t *testing.T) {
		for r, want := range map[result]bool{0x800F081F: true, 0x80070005: true, 0x8024402C: true, 0x800F082F: false, 0x80080005: false} {
			err := error(&dismError{call: "DismEnableFeature", result: r})
			if got := strings.Contains(err.Error(), "on the disk: enable the feature at the console"); got != want {
				t.Errorf("%v", err)
			}
			if got := strings.Contains(err.Error(), "dism.log"); got != (r != 0x800F081F && r != 0x800F082F) {
				t.Errorf("only some of them are certain: %v", err)
			}
		}
		denied := error(&dismError{call: "DismDisableFeature", result: 0x80070005})
		if strings.Contains(denied.Error(), "not on the disk") {
			t.Errorf("a feature that is disabled needs no files: %v", denied)
		}
	})
}
