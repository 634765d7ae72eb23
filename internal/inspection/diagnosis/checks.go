package diagnosis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// Outcome is the outcome of a check.
type Outcome string

// Outcomes.
const (
	Passed     Outcome = "Passed"
	Failed     Outcome = "Failed"
	NotReached Outcome = "NotReached" // an earlier check failed, or its input is unknown
)

// Check is one check: a condition that a node must meet.
type Check struct {
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	Message string  `json:"message,omitempty"`
	Remedy  string  `json:"remedy,omitempty"`
}

// The checks, in their order. Each check up to the agent needs the previous checks; the remaining checks need
// the agent.
const (
	nameCheck          = "name"
	tcpCheck           = "TCP"
	sshCheck           = "SSH"
	hostKeyCheck       = "host key"
	loginCheck         = "login"
	administratorCheck = "administrator"
	agentCheck         = "agent"
	windowsCheck       = "Windows"
	featuresCheck      = "features"
	apiServerCheck     = "API server"
	clockCheck         = "clock"
	diskCheck          = "disk"
	portsCheck         = "ports"
)

// Evidence holds the findings about a host.
type Evidence struct {
	Address, User string
	// LastReachedAddress is the IP address of the established connection, and HostKey the key presented by the
	// host. Pinned means that this key was required.
	LastReachedAddress string
	HostKey            *remote.HostKey
	Pinned             bool
	// Failure is the error that prevented a response of the agent; nil if the agent responded.
	Failure error
	// AgentInstalled means that the agent is in a directory writable only by administrators. AgentCopied means that a
	// copy was installed there, and is deleted again.
	AgentInstalled, AgentCopied bool

	// Facts holds the response of the agent.
	Facts *plan.Facts
	Clock support.ClockReading
	// Cluster holds the facts of the cluster; nil if unknown, and Unknown contains the reason.
	Cluster *nodespec.Cluster
	Unknown string
	// MissingBytes is the number of payload bytes missing on the host.
	MissingBytes int64
	// Node means that the host is a node of the cluster. OpenPorts contains the TCP ports that accept
	// connections of the operator.
	Node      bool
	OpenPorts map[int]bool
}

// EvaluateChecks returns all checks.
func EvaluateChecks(line support.ReleaseLine, e Evidence) []Check {
	checks := e.checkConnection()
	if e.Failure != nil || e.Facts == nil {
		for _, name := range []string{windowsCheck, featuresCheck, apiServerCheck, clockCheck, diskCheck, portsCheck} {
			checks = append(checks, Check{Name: name, Outcome: NotReached})
		}
		return checks
	}
	return append(checks, e.checkWindows(line), e.checkFeatures(), e.checkAPIServer(), e.checkClock(), e.checkDisk(), e.checkPorts())
}

// newCheck returns a check that has failed with a message and a remedy; an empty message passes.
func newCheck(name, passed string, failure, remedy string) Check {
	if failure == "" {
		return Check{Name: name, Outcome: Passed, Message: passed}
	}
	return Check{Name: name, Outcome: Failed, Message: failure, Remedy: remedy}
}

func (e Evidence) checkWindows(line support.ReleaseLine) Check {
	if e.Cluster == nil {
		return Check{Name: windowsCheck, Outcome: NotReached, Message: e.Unknown}
	}
	decision := line.SupportHost(sanitizeSystemInfo(e.Facts.System), *e.Cluster)
	if !decision.Allowed {
		return newCheck(windowsCheck, "", decision.Message, support.HostRemedy)
	}
	if firewall := support.SupportFirewall(e.Facts.System); !firewall.Allowed {
		return newCheck(windowsCheck, "", firewall.Message, support.FirewallRemedy)
	}
	message := decision.Message
	system := e.Facts.System
	if advice := support.Advise(fmt.Sprintf("%s.%d", system.Version, system.Revision)); advice != "" {
		message += " But " + sanitize.Sentence(advice)
	}
	return newCheck(windowsCheck, message, "", "")
}

// sanitizeSystemInfo sanitizes the facts of the host for display.
func sanitizeSystemInfo(system host.SystemInfo) host.SystemInfo {
	for _, foreign := range []*string{&system.Product, &system.Edition, &system.Version, &system.Architecture} {
		*foreign = sanitize.Plain(*foreign, maxFactLength)
	}
	return system
}

// maxFactLength is the maximum length of a fact reported by a host, in bytes.
const maxFactLength = 256

func (e Evidence) checkFeatures() Check {
	var states, lacking []string
	for _, name := range slices.Concat(nodespec.Features(), nodespec.OptionalFeatures()) {
		state := host.FeatureState(sanitize.Plain(string(e.Facts.Features[name]), maxFactLength))
		if state == "" || state == host.FeatureUnknown {
			if slices.Contains(nodespec.Features(), name) {
				lacking = append(lacking, name)
			}
			continue
		}
		states = append(states, name+" is "+string(state))
	}
	if len(lacking) > 0 {
		return newCheck(featuresCheck, "", "This Windows does not have the feature "+strings.Join(lacking, ", ")+".",
			"Install an edition of Windows Server that has it.")
	}
	message := strings.Join(states, ", ") + "."
	if slices.ContainsFunc(nodespec.Features(), func(name string) bool { return e.Facts.Features[name] != host.FeatureEnabled }) {
		message += " The operator enables it and restarts the host."
	}
	if e.Facts.System.RebootPending {
		message += " Windows waits for a restart."
	}
	return newCheck(featuresCheck, message, "", "")
}

func (e Evidence) checkAPIServer() Check {
	asked := e.Facts.APIServer
	switch {
	case asked == nil && e.Cluster == nil:
		return Check{Name: apiServerCheck, Outcome: NotReached, Message: e.Unknown}
	case asked == nil:
		return Check{Name: apiServerCheck, Outcome: NotReached, Message: "The address of the API server is not known."}
	}
	told := plan.APIServerFacts{URL: sanitize.Plain(asked.URL, maxFactLength), Resolved: asked.Resolved,
		Error: sanitize.Plain(asked.Error, result.MaxMessageLength)}
	if o := result.APIServerUnreachable(&told); o != nil {
		return newCheck(apiServerCheck, "", o.Message, strings.TrimPrefix(o.NextAction, result.HostUnchanged))
	}
	return newCheck(apiServerCheck, "The host reaches "+told.URL+".", "", "")
}

func (e Evidence) checkClock() Check {
	if decision := support.SupportClock(e.Clock); !decision.Allowed {
		return newCheck(clockCheck, "", decision.Message, support.ClockRemedy)
	}
	if advice := support.ClockAdvice(e.Clock); advice != "" {
		return newCheck(clockCheck, strings.ToUpper(advice[:1])+advice[1:], "", "")
	}
	return newCheck(clockCheck, "The host's clock matches the operator's clock.", "", "")
}

func (e Evidence) checkDisk() Check {
	free := e.Facts.System.FreeDiskBytes
	// The copied files and the files unpacked from them coexist on the disk.
	if need := 2 * e.MissingBytes; free < need {
		return newCheck(diskCheck, "", fmt.Sprintf("Drive C: has %s free, and the programs of a node need %s.", sanitize.FormatMebibytes(free),
			sanitize.FormatMebibytes(need)), "Free space on drive C: of the host, also for the images of containers.")
	}
	return newCheck(diskCheck, fmt.Sprintf("Drive C: has %s free.", sanitize.FormatMebibytes(free)), "", "")
}

// checkPorts checks the ports that a node serves. On a node, these ports must accept connections. On any other host,
// no program may use these ports, unless the operator has configured the host.
func (e Evidence) checkPorts() Check {
	var open, closed []string
	for _, port := range nodespec.ServedPorts() {
		if e.OpenPorts[port] {
			open = append(open, strconv.Itoa(port))
		} else {
			closed = append(closed, strconv.Itoa(port))
		}
	}
	switch {
	case e.Node && len(closed) > 0:
		return newCheck(portsCheck, "", "The operator cannot connect to TCP port "+strings.Join(closed, ", ")+" of the node.",
			"Allow connections from the cluster's nodes to the port in firewalls and routes.")
	case !e.Node && e.Facts.Applied == "" && len(open) > 0:
		return newCheck(portsCheck, "", "Another program answers on TCP port "+strings.Join(open, ", ")+
			", which a node needs.", "Identify the program with netstat -abno on the host, and remove it unless it is the kubelet of this cluster.")
	}
	var found []string
	if len(open) > 0 {
		found = append(found, "The host answers on TCP port "+strings.Join(open, ", ")+".")
	}
	if len(closed) > 0 {
		found = append(found, "Nothing answers on TCP port "+strings.Join(closed, ", ")+" yet.")
	}
	return newCheck(portsCheck, strings.Join(found, " "), "", "")
}
