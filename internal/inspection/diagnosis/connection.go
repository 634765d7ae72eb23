package diagnosis

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/sshkeysecret"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// connectionCheckNames returns the names of the checks up to the agent.
func connectionCheckNames() []string {
	return []string{nameCheck, tcpCheck, sshCheck, hostKeyCheck, loginCheck, administratorCheck, agentCheck}
}

// checkConnection returns the checks up to the agent.
func (e Evidence) checkConnection() []Check {
	var checks []Check
	failed := ""
	if e.Failure != nil {
		failed = failedCheckName(e.Failure)
	}
	outcome := Passed
	for _, name := range connectionCheckNames() {
		switch {
		case name == failed:
			o := hostjobs.ResultFromError(v1alpha1.ConditionReachable, e.Failure)
			checks = append(checks, Check{Name: name, Outcome: Failed, Message: o.Message, Remedy: withoutRetryHint(o.NextAction)})
			outcome = NotReached
		case outcome == Passed && (name != administratorCheck || e.AgentInstalled):
			checks = append(checks, Check{Name: name, Outcome: Passed, Message: e.passedMessage(name)})
		default:
			checks = append(checks, Check{Name: name, Outcome: NotReached})
		}
	}
	return checks
}

// withoutRetryHint removes the operator's retry from the next action: a diagnosis is no attempt of the operator to
// configure the host.
func withoutRetryHint(next string) string {
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

// failedCheckName returns the check that an error belongs to.
func failedCheckName(err error) string {
	var e *remote.Error
	if !errors.As(err, &e) {
		return agentCheck
	}
	switch e.Stage {
	case remote.StageName:
		return nameCheck
	case remote.StageTCP:
		return tcpCheck
	case remote.StageIdentification:
		return sshCheck
	case remote.StageHostKey:
		return hostKeyCheck
	case remote.StageLogin:
		return loginCheck
	}
	if errors.Is(e, fs.ErrPermission) {
		return administratorCheck
	}
	return agentCheck
}

// passedMessage returns the message of a passed check.
func (e Evidence) passedMessage(name string) string {
	switch name {
	case nameCheck:
		return e.describeName()
	case tcpCheck:
		return fmt.Sprintf("Port %d answers.", remote.DefaultPort)
	case sshCheck:
		return "An SSH server answers."
	case hostKeyCheck:
		return e.describeHostKey()
	case loginCheck:
		return fmt.Sprintf("User %s can log in with the key of Secret %s.", e.User, sshkeysecret.SecretName)
	case administratorCheck:
		return fmt.Sprintf("User %s is an administrator.", e.User)
	}
	if e.AgentCopied {
		return "The operator's agent runs. The copy installed for this check is deleted."
	}
	return "The operator's agent is installed and runs."
}

func (e Evidence) describeName() string {
	if _, err := netip.ParseAddr(e.Address); err == nil {
		return e.Address + " is an IP address."
	}
	if e.LastReachedAddress == "" {
		return e.Address + " resolves."
	}
	return e.Address + " resolves to " + e.LastReachedAddress + "."
}

func (e Evidence) describeHostKey() string {
	key := e.HostKey
	var failed *remote.Error
	if key == nil && errors.As(e.Failure, &failed) {
		key = failed.HostKey
	}
	switch {
	case key == nil:
		return "The host presents a host key."
	case e.Pinned:
		return "The host presents the pinned key " + key.Fingerprint() + "."
	}
	return "The host presents the key " + key.Fingerprint() +
		", and none is pinned yet. Compare it with ssh-keygen -l on the host's console."
}
