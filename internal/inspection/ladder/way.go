package ladder

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/keys"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// way returns the rungs up to the agent.
func way() []string {
	return []string{rungName, rungTCP, rungSSH, rungHostKey, rungLogin, rungAdministrator, rungAgent}
}

// judgeWay returns the rungs up to the agent.
func (e Evidence) judgeWay() []Rung {
	var rungs []Rung
	failed := ""
	if e.Failure != nil {
		failed = failedAt(e.Failure)
	}
	outcome := Passed
	for _, name := range way() {
		switch {
		case name == failed:
			o := obstacle.Host(v1alpha1.ConditionReachable, e.Failure)
			rungs = append(rungs, Rung{Name: name, Outcome: Failed, Message: o.Message, Remedy: o.Next})
			outcome = NotReached
		case outcome == Passed && (name != rungAdministrator || e.Settled):
			rungs = append(rungs, Rung{Name: name, Outcome: Passed, Message: e.passed(name)})
		default:
			rungs = append(rungs, Rung{Name: name, Outcome: NotReached})
		}
	}
	return rungs
}

// failedAt returns the rung at which an error says that the way ended.
func failedAt(err error) string {
	var e *remote.Error
	if !errors.As(err, &e) {
		return rungAgent
	}
	switch e.Stage {
	case remote.StageName:
		return rungName
	case remote.StageTCP:
		return rungTCP
	case remote.StageIdentification:
		return rungSSH
	case remote.StageHostKey:
		return rungHostKey
	case remote.StageLogin:
		return rungLogin
	}
	if errors.Is(e, fs.ErrPermission) {
		return rungAdministrator
	}
	return rungAgent
}

// passed is what is said of a rung of the way that was passed.
func (e Evidence) passed(name string) string {
	switch name {
	case rungName:
		return e.named()
	case rungTCP:
		return fmt.Sprintf("Port %d answers.", remote.DefaultPort)
	case rungSSH:
		return "An SSH server answers."
	case rungHostKey:
		return e.keyShown()
	case rungLogin:
		return fmt.Sprintf("User %s can log in with the key of Secret %s.", e.User, keys.SecretName)
	case rungAdministrator:
		return fmt.Sprintf("User %s is an administrator.", e.User)
	}
	if e.Brought {
		return "The operator's agent runs. The copy that was brought for this is deleted again."
	}
	return "The operator's agent is on the host, and runs."
}

func (e Evidence) named() string {
	if _, err := netip.ParseAddr(e.Address); err == nil {
		return e.Address + " is an IP address."
	}
	if e.ReachedAt == "" {
		return e.Address + " resolves."
	}
	return e.Address + " resolves to " + e.ReachedAt + "."
}

func (e Evidence) keyShown() string {
	switch {
	case e.HostKey == nil:
		return "The host has shown a key that can be trusted."
	case e.Pinned:
		return "The host shows the pinned key " + e.HostKey.Fingerprint() + "."
	}
	return "The host shows the key " + e.HostKey.Fingerprint() +
		", and none is pinned yet. Compare it with ssh-keygen -l on the host's console."
}
