package boot

import (
	"slices"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/lab/controlplane/internal/pki"
)

func TestControllerManagerArgs_NodeGracePeriodOnlyIfSet(t *testing.T) {
	const anHour = "--node-monitor-grace-period=1h0m0s"
	creds := &Credentials{Authorities: &pki.Authorities{Server: &pki.CA{}, CSRSigner: &pki.CA{}}}
	for given, want := range map[time.Duration]bool{0: false, time.Hour: true} {
		if args := controllerManagerArgs(&Config{NodeGracePeriod: given}, creds, "kubeconfig"); slices.Contains(args,
			anHour) != want {
			t.Errorf("for %s the controller manager gets %q", given, args)
		}
	}
}
