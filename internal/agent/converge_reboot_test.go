package agent_test

import (
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

func TestReboot(t *testing.T) {
	t.Parallel()
	r := newNodeRig(t)
	boot := r.BootID()
	reboots := r.Journal().Count(fake.KindReboot)
	line, steps := r.run("reboot", "--boot-id", "boot:"+boot)
	if line.Type != agentapi.TypeRebooting || len(steps) != 1 || steps[0] != "Reboot" || line.Result.Facts.System.BootID != boot {
		t.Fatalf("%s %v, steps %v", line.Type, line.Failure, steps)
	}
	r.awaitBoot(boot)
	t.Run("asked for again for the boot that is over, it restarts nothing", func(t *testing.T) {
		result, _ := r.mustResult(r.run("reboot", "--boot-id", "boot:"+boot))
		if n := r.Journal().Count(fake.KindReboot); n != reboots+1 || result.Facts.System.BootID == boot {
			t.Errorf("%d restarts", n-reboots)
		}
	})
	t.Run("the node's services run again", func(t *testing.T) {
		r.advanceUntil("kube-proxy runs", func() bool { return r.isRunning("kube-proxy") })
	})
	t.Run("killed before it restarts the host, it can be asked for again", func(t *testing.T) {
		boot := r.BootID()
		for n := 1; ; n++ {
			k := &killer{n: n}
			k.registerHook(r)
			line, _ := r.run("reboot", "--boot-id", "boot:"+boot)
			if k.at == "" {
				if line.Type != agentapi.TypeRebooting && r.BootID() == boot {
					t.Errorf("%s %v", line.Type, line.Failure)
				}
				break
			}
		}
		r.awaitBoot(boot)
	})
	for name, args := range map[string]string{
		"without the boot":            "reboot",
		"with another word before it": "reboot --boot-id sha256:00",
		"with nothing behind it":      "reboot --boot-id boot:",
		"a fallback for a plan":       `plan --spec C:\a.json --rollback-to sha256:00`,
		"a fallback without its kind": `apply --spec C:\a.json --rollback-to 00`,
		"a spec for a rollback":       `rollback --spec C:\a.json`,
		"a digest to be settled":      "commit --digest sha256:00",
	} {
		t.Run(name, func(t *testing.T) {
			line, _ := r.run(strings.Fields(args)...)
			r.checkFailure(line, agentapi.ReasonInvalidInput, "usage: wicd")
		})
	}
}
