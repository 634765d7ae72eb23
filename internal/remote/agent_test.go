package remote_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/remote"
)

func TestAgentsThatAreOnTheHost(t *testing.T) {
	t.Run("where none ever was there are none", func(t *testing.T) {
		s, c := hostWith(t, nil)
		if agents, err := c.Agents(t.Context()); err != nil || len(agents) != 0 {
			t.Errorf("%q, %v", agents, err)
		}
		if s.fileSessions.Load() != 1 {
			t.Errorf("%d SFTP sessions", s.fileSessions.Load())
		}
	})
	t.Run("are told by their folders, the last first, and nothing else is", func(t *testing.T) {
		s, c := hostWith(t, nil)
		root := sftpForm(nodespec.AgentRoot)
		for i, name := range []string{"0123456789ab", "ba9876543210", "00000000000f"} {
			s.disk.put(root+"/"+name+"/wicd.exe", "MZ")
			when := time.Now().Add(time.Duration(i-5) * time.Hour)
			if err := os.Chtimes(s.disk.path(root+"/"+name), when, when); err != nil {
				t.Fatal(err)
			}
		}
		for _, other := range []string{"inbox/spec-0123456789ab.json", "spec.json", "0123456789ac", "0123456789AB2/x", "x y z x y z x/x"} {
			s.disk.put(root+"/"+other, "")
		}
		agents, err := c.Agents(t.Context())
		if err != nil || !slices.Equal(agents, []string{"00000000000f", "ba9876543210", "0123456789ab"}) {
			t.Errorf("%q, %v", agents, err)
		}
	})
	t.Run("that cannot be listed are a failure of the transfer", func(t *testing.T) {
		_, c := hostWith(t, nil, func(s *server) {
			s.disk.failures["List /"+sftpForm(nodespec.AgentRoot)] = os.ErrPermission
		})
		_, err := c.Agents(t.Context())
		expectError(t, err, remote.ReasonTransferFailed, nodespec.AgentRoot)
	})
}
