package link

import (
	"net/netip"
	"slices"

	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/text"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// What a host tells of itself goes into the status. A line of its answer may have megabytes, and who controls the host
// writes what they like: these bounds, in bytes, are far beyond what Windows has, and keep the object within what the
// API server takes.
const (
	longestFact   = 256
	longestDetail = 1024
	// mostAddresses is how many addresses of a host are kept, the default route's among them.
	mostAddresses = 64
)

// boundedStep returns a step of which not more is kept than people read.
func boundedStep(step verb.Step) verb.Step {
	step.Name, step.Detail = text.Plain(step.Name, longestFact), text.Plain(step.Detail, longestDetail)
	step.Of = min(max(step.Of, 0), mostSteps)
	step.Index = min(max(step.Index, 0), step.Of)
	return step
}

// mostSteps is far beyond what a plan has.
const mostSteps = 1_000_000

// mostNames is how many names of one kind people read.
const mostNames = 10

// boundResult cuts what the operator keeps of a result.
func boundResult(result *verb.Result) {
	boundFacts(result.Facts)
	result.NoFallback = text.Plain(result.NoFallback, longestDetail)
	result.NotRestored = slices.Clone(result.NotRestored[:min(len(result.NotRestored), mostNames)])
	for i, name := range result.NotRestored {
		result.NotRestored[i] = text.Plain(name, longestFact)
	}
}

// boundFacts cuts those facts that the operator keeps. They are cut where they come in: what is compared later is cut
// alike.
func boundFacts(facts *plan.Facts) {
	if facts == nil {
		return
	}
	system := &facts.System
	texts := []*string{
		&system.Product, &system.Edition, &system.Version, &system.Architecture, &system.HostName,
		&system.PendingHostName, &system.Domain,
		&system.MachineID, &system.BootID, &facts.Applied, &facts.Fallback, &facts.PodSubnet,
		&facts.AppliedAgent, &facts.FallbackAgent,
	}
	for _, foreign := range texts {
		*foreign = text.Plain(*foreign, longestFact)
	}
	facts.NoFallback = text.Plain(facts.NoFallback, longestDetail)
	if facts.CloudName != nil {
		facts.CloudName.Name = text.Plain(facts.CloudName.Name, longestFact)
		facts.CloudName.Error = text.Plain(facts.CloudName.Error, longestDetail)
	}
	if facts.APIServer != nil {
		facts.APIServer.URL = text.Plain(facts.APIServer.URL, longestFact)
		facts.APIServer.Error = text.Plain(facts.APIServer.Error, longestDetail)
	}
	if current := facts.Identity.Current; current != nil {
		current.CommonName = text.Plain(current.CommonName, longestFact)
	}
	system.Addresses = slices.DeleteFunc(slices.Clone(system.Addresses), func(address string) bool {
		return !isAddress(address)
	})
	if len(system.Addresses) > mostAddresses {
		system.Addresses = slices.Clone(system.Addresses[:mostAddresses])
	}
}

func isAddress(foreign string) bool {
	address, err := netip.ParseAddr(foreign)
	return err == nil && address.Zone() == ""
}
