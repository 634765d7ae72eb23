package ladder

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/keys"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// way returns the names of the checks up to the agent.
func way() []string {
	return []string{rungName, rungTCP, rungSSH, rungHostKey, rungLogin, rungAdministrator, rungAgent}
}

// judgeWay returns the checks up to the agent.
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
			o := hostjobs.FailureOf(v1alpha1.ConditionReachable, e.Failure)
			rungs = append(rungs, Rung{Name: name, Outcome: Failed, Message: o.Message, Remedy: remedy(o.Next)})
			outcome = NotReached
		case outcome == Passed && (name != rungAdministrator || e.Settled):
			rungs = append(rungs, Rung{Name: name, Outcome: Passed, Message: e.passed(name)})
		default:
			rungs = append(rungs, Rung{Name: name, Outcome: NotReached})
		}
	}
	return rungs
}

// remedy removes the operator's retry from the next action: a diagnosis is no attempt of the operator to
// configure the host.
func remedy(next string) string {
	rest, again := strings.CutPrefix(next, "The operator retries")
	if !again {
		return next
	}
	rest = strings.TrimPrefix(rest, "; ")
	if len(rest) < 2 || strings.HasPrefix(rest, "completed steps") {
		return "Try again."
	}
	return strings.ToUpper(rest[:1]) + rest[1:]
}

// failedAt returns the check that an error belongs to.
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

// passed returns the message of a passed check.
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
	if e.LastReachedAddress == "" {
		return e.Address + " resolves."
	}
	return e.Address + " resolves to " + e.LastReachedAddress + "."
}

func (e Evidence) keyShown() string {
	key := e.HostKey
	var failed *remote.Error
	if key == nil && errors.As(e.Failure, &failed) {
		key = failed.HostKey
	}
	switch {
	case key == nil:
		return "The host shows a host key."
	case e.Pinned:
		return "The host shows the pinned key " + key.Fingerprint() + "."
	}
	return "The host shows the key " + key.Fingerprint() +
		", and none is pinned yet. Compare it with ssh-keygen -l on the host's console."
}
