package nodespec

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func TestLogSettings(t *testing.T) {
	t.Run("what is set becomes flags of kube-log-runner", func(t *testing.T) {
		settings, err := ParseLogSettings("100Mi", "168h", "5s")
		want := []string{"-log-file-size=100Mi", "-log-file-age=168h0m0s", "-flush-interval=5s"}
		if got := settings.arguments(); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, error %v", got, err)
		}
	})
	for name, size := range map[string]string{"nothing": "", "zero": "0"} {
		t.Run(name+" sets nothing", func(t *testing.T) {
			settings, err := ParseLogSettings(size, strings.Repeat("0s", len(size)), strings.Repeat("0s", len(size)))
			if err != nil || settings != (LogSettings{}) || len(settings.arguments()) != 0 {
				t.Errorf("got %+v, error %v", settings, err)
			}
		})
	}
	faults := map[string]struct{ size, age, flush, want string }{
		"a size that is no number":       {"big", "", "", "SERVICES_LOG_FILE_SIZE"},
		"a size below zero":              {"-1", "", "", "SERVICES_LOG_FILE_SIZE"},
		"a size that is two words":       {"1 -x", "", "", "SERVICES_LOG_FILE_SIZE"},
		"a size that Kubernetes refuses": {"100K", "", "", "SERVICES_LOG_FILE_SIZE"},
		"an age without a unit":          {"", "7", "", "SERVICES_LOG_FILE_AGE"},
		"an age below zero":              {"", "-1h", "", "SERVICES_LOG_FILE_AGE"},
		"an interval that is none":       {"", "", "soon", "SERVICES_LOG_FLUSH_INTERVAL"},
	}
	for name, test := range faults {
		t.Run(name+" is refused", func(t *testing.T) {
			if _, err := ParseLogSettings(test.size, test.age, test.flush); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v", err)
			}
		})
	}
	t.Run("every size that is accepted is a quantity to kube-log-runner", func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			size := rapid.StringMatching(`[0-9]{1,16}(|[a-zA-Z]i?)`).Draw(r, "size")
			if _, err := ParseLogSettings(size, "", ""); err == nil {
				if _, err := resource.ParseQuantity(size); err != nil {
					r.Fatalf("%s: %v", size, err)
				}
			}
		})
	})
}
