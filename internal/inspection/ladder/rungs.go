package ladder

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
	"github.com/windows-machine-config/wmco/internal/text"
)

// Outcome is how a rung was passed.
type Outcome string

// Outcomes.
const (
	Passed     Outcome = "Passed"
	Failed     Outcome = "Failed"
	NotReached Outcome = "NotReached" // an earlier one has failed, or what it needs is not known
)

// Rung is one condition under which a host can be a node.
type Rung struct {
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	Message string  `json:"message,omitempty"`
	Remedy  string  `json:"remedy,omitempty"`
}

// The rungs, in their order. Each up to the agent needs those before it; the others need the agent.
const (
	rungName          = "name"
	rungTCP           = "TCP"
	rungSSH           = "SSH"
	rungHostKey       = "host key"
	rungLogin         = "login"
	rungAdministrator = "administrator"
	rungAgent         = "agent"
	rungWindows       = "Windows"
	rungFeatures      = "features"
	rungAPIServer     = "API server"
	rungClock         = "clock"
	rungDisk          = "disk"
	rungPorts         = "ports"
)

// Evidence is what was found of a host.
type Evidence struct {
	Address, User string
	// LastReachedAddress is the IP address of a connection that was made, and HostKey the key that was shown; Pinned says that it
	// had to be that one.
	LastReachedAddress string
	HostKey            *remote.HostKey
	Pinned             bool
	// Failure is what ended the way to the agent's answer; nil when there is one.
	Failure error
	// Settled says that the agent is where only administrators write, and Brought that a copy was brought there, and is
	// deleted again.
	Settled, Brought bool

	// Facts are the agent's answer.
	Facts *plan.Facts
	Clock support.ClockReading
	// Cluster are the facts of the cluster; nil when they are not known, and Unknown says why.
	Cluster *nodespec.Cluster
	Unknown string
	// Lacks is how many bytes of the payload the host lacks.
	Lacks int64
	// Node says that the host is a node of the cluster, and Answered which TCP ports let the operator in.
	Node     bool
	Answered map[int]bool
}

// Judge returns all rungs.
func Judge(line support.ReleaseLine, e Evidence) []Rung {
	rungs := e.judgeWay()
	if e.Failure != nil || e.Facts == nil {
		for _, name := range []string{rungWindows, rungFeatures, rungAPIServer, rungClock, rungDisk, rungPorts} {
			rungs = append(rungs, Rung{Name: name, Outcome: NotReached})
		}
		return rungs
	}
	return append(rungs, e.windows(line), e.features(), e.apiServer(), e.clock(), e.disk(), e.ports())
}

// settled returns a rung that is Failed with the message and remedy of a result; nil passes.
func settled(name, passed string, failure, remedy string) Rung {
	if failure == "" {
		return Rung{Name: name, Outcome: Passed, Message: passed}
	}
	return Rung{Name: name, Outcome: Failed, Message: failure, Remedy: remedy}
}

func (e Evidence) windows(line support.ReleaseLine) Rung {
	if e.Cluster == nil {
		return Rung{Name: rungWindows, Outcome: NotReached, Message: e.Unknown}
	}
	decision := line.SupportHost(plain(e.Facts.System), *e.Cluster)
	if !decision.Allowed {
		return settled(rungWindows, "", decision.Message, support.HostRemedy)
	}
	if firewall := support.SupportFirewall(e.Facts.System); !firewall.Allowed {
		return settled(rungWindows, "", firewall.Message, support.FirewallRemedy)
	}
	message := decision.Message
	system := e.Facts.System
	if advice := support.Advise(fmt.Sprintf("%s.%d", system.Version, system.Revision)); advice != "" {
		message += " But " + text.Sentence(advice)
	}
	return settled(rungWindows, message, "", "")
}

// plain makes what the host tells of itself fit to be shown.
func plain(system host.SystemInfo) host.SystemInfo {
	for _, foreign := range []*string{&system.Product, &system.Edition, &system.Version, &system.Architecture} {
		*foreign = text.Plain(*foreign, longestFact)
	}
	return system
}

// longestFact limits what a host tells of itself, in bytes.
const longestFact = 256

func (e Evidence) features() Rung {
	var states, lacking []string
	for _, name := range slices.Concat(nodespec.Features(), nodespec.OptionalFeatures()) {
		state := host.FeatureState(text.Plain(string(e.Facts.Features[name]), longestFact))
		if state == "" || state == host.FeatureUnknown {
			if slices.Contains(nodespec.Features(), name) {
				lacking = append(lacking, name)
			}
			continue
		}
		states = append(states, name+" is "+string(state))
	}
	if len(lacking) > 0 {
		return settled(rungFeatures, "", "This Windows does not have the feature "+strings.Join(lacking, ", ")+".",
			"Install an edition of Windows Server that has it.")
	}
	message := strings.Join(states, ", ") + "."
	if slices.ContainsFunc(nodespec.Features(), func(name string) bool { return e.Facts.Features[name] != host.FeatureEnabled }) {
		message += " The operator enables it and restarts the host."
	}
	if e.Facts.System.RebootPending {
		message += " Windows waits for a restart."
	}
	return settled(rungFeatures, message, "", "")
}

func (e Evidence) apiServer() Rung {
	asked := e.Facts.APIServer
	switch {
	case asked == nil && e.Cluster == nil:
		return Rung{Name: rungAPIServer, Outcome: NotReached, Message: e.Unknown}
	case asked == nil:
		return Rung{Name: rungAPIServer, Outcome: NotReached, Message: "The address of the API server is not known."}
	}
	told := plan.APIServerFacts{URL: text.Plain(asked.URL, longestFact), Resolved: asked.Resolved,
		Error: text.Plain(asked.Error, result.LongestMessage)}
	if o := result.APIServerUnreachable(&told); o != nil {
		return settled(rungAPIServer, "", o.Message, strings.TrimPrefix(o.Next, result.Untouched))
	}
	return settled(rungAPIServer, "The host reaches "+told.URL+".", "", "")
}

func (e Evidence) clock() Rung {
	if decision := support.SupportClock(e.Clock); !decision.Allowed {
		return settled(rungClock, "", decision.Message, support.ClockRemedy)
	}
	if advice := support.ClockAdvice(e.Clock); advice != "" {
		return settled(rungClock, strings.ToUpper(advice[:1])+advice[1:], "", "")
	}
	return settled(rungClock, "The host's clock agrees with the operator's.", "", "")
}

func (e Evidence) disk() Rung {
	free := e.Facts.System.FreeDiskBytes
	// What is sent lies beside what is made of it.
	if need := 2 * e.Lacks; free < need {
		return settled(rungDisk, "", fmt.Sprintf("Drive C: has %s free, and the programs of a node need %s.", text.Mebibytes(free),
			text.Mebibytes(need)), "Free space on drive C: of the host, also for the images of containers.")
	}
	return settled(rungDisk, fmt.Sprintf("Drive C: has %s free.", text.Mebibytes(free)), "", "")
}

// ports looks at the ports that a node serves: of a node they must answer, and of another host nothing may hold them,
// unless the operator has configured it.
func (e Evidence) ports() Rung {
	var open, closed []string
	for _, port := range nodespec.ServedPorts() {
		if e.Answered[port] {
			open = append(open, strconv.Itoa(port))
		} else {
			closed = append(closed, strconv.Itoa(port))
		}
	}
	switch {
	case e.Node && len(closed) > 0:
		return settled(rungPorts, "", "The operator cannot connect to TCP port "+strings.Join(closed, ", ")+" of the node.",
			"Let the cluster's nodes reach it, in the firewalls and routes between them and the host.")
	case !e.Node && e.Facts.Applied == "" && len(open) > 0:
		return settled(rungPorts, "", "Another program answers on TCP port "+strings.Join(open, ", ")+
			", which a node needs for itself.", "Find out on the host which it is with netstat -abno, and remove it if it is not the kubelet of this cluster.")
	}
	var found []string
	if len(open) > 0 {
		found = append(found, "The host answers on TCP port "+strings.Join(open, ", ")+".")
	}
	if len(closed) > 0 {
		found = append(found, "Nothing answers on TCP port "+strings.Join(closed, ", ")+" yet.")
	}
	return settled(rungPorts, strings.Join(found, " "), "", "")
}
