//go:build windows

package windows

import (
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestNetworks(t *testing.T) {
	t.Run("a Windows without the Host Networking Service says what to do", func(t *testing.T) {
		if openHNS() == nil {
			t.Skip("this one has it")
		}
		if _, err := (networks{}).Networks(t.Context()); err == nil || !strings.Contains(err.Error(),
			"Containers must be enabled") {
			t.Error(err)
		}
	})
	t.Run("names that are not there are not there", func(t *testing.T) {
		if _, err := (networks{}).Networks(t.Context()); err != nil {
			t.Skipf("NOT SHOWN HERE: HNS networks (%v)", err)
		}
		const name = "wmco-no-such-name"
		requireError(t, networks{}.DeleteNetwork(t.Context(), name), host.ErrNotExist)
		requireError(t, networks{}.DeleteEndpoint(t.Context(), name), host.ErrNotExist)
		_, err := networks{}.CreateEndpoint(t.Context(), name, name, "")
		requireError(t, err, host.ErrNotExist)
	})
}
