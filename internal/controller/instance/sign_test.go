package instance

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// A MachineSet's name may have 63 characters, and those of its Machines have six more.
func TestTheLabelOfARequestTakesEveryNameOfAMachine(t *testing.T) {
	long := strings.Repeat("x", 63)
	for name, c := range map[string]struct{ instance, want string }{
		"a name that fits stays as it is":               {"winworker-x2k4f", "winworker-x2k4f"},
		"so does the longest":                           {long, long},
		"a longer one is cut":                           {long + "-x2k4f", ""},
		"so is one with a dot at the end of what stays": {strings.Repeat("x", 39) + "." + long, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := labelOf(c.instance)
			if problems := validation.IsValidLabelValue(got); len(problems) > 0 || c.want != "" && got != c.want {
				t.Errorf("it is %q: %q", got, problems)
			}
		})
	}
	if labelOf(long+"-x2k4f") == labelOf(long+"-7vq9z") {
		t.Error("two Machines of one MachineSet have one label")
	}
}
