package hostjobs

import (
	"net/netip"
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
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
	// digestLength is how long a SHA-256 is in hexadecimal, and longestPath more than any path of ours is.
	digestLength, longestPath = 64, 512
	// mostFiles is how many files of the payload are known of a host, and mostIdentities how many keys: a payload has some
	// dozens, and a node three.
	mostFiles, mostIdentities = 1000, 16
	// longestRequest is more than a certificate request has, and mostOrganizations more than a certificate of ours names.
	longestRequest, mostOrganizations = 16 << 10, 4
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
	boundPlan(result.Plan)
	boundChecks(result)
	result.NoFallback = text.Plain(result.NoFallback, longestDetail)
	result.NotRestored = slices.Clone(result.NotRestored[:min(len(result.NotRestored), mostNames)])
	for i, name := range result.NotRestored {
		result.NotRestored[i] = text.Plain(name, longestFact)
	}
}

// maxChecks is the maximum number of checks that a result keeps. A node has about twenty.
const maxChecks = 200

// boundChecks limits the number of checks and their texts.
func boundChecks(result *verb.Result) {
	result.Checks = slices.Clone(result.Checks[:min(len(result.Checks), maxChecks)])
	for i := range result.Checks {
		check := &result.Checks[i]
		check.Name, check.Message = text.Plain(check.Name, longestFact), text.Plain(check.Message, longestDetail)
	}
}

// boundFacts drops the facts that only the agent's own plan needs, which are most of them, and cuts those that the
// operator keeps: hundreds of hosts are remembered at once. They are cut where they come in: what is compared later is
// cut alike.
func boundFacts(facts *plan.Facts) {
	if facts == nil {
		return
	}
	kept := plan.Facts{
		Time: facts.Time, KubeletStarted: facts.KubeletStarted, System: boundedSystem(facts.System), Applied: text.Plain(facts.Applied, longestFact),
		Fallback: text.Plain(facts.Fallback, longestFact), PodSubnet: text.Plain(facts.PodSubnet, longestFact),
		NodeName:      text.Plain(facts.NodeName, longestFact),
		AppliedAgent:  text.Plain(facts.AppliedAgent, longestFact),
		FallbackAgent: text.Plain(facts.FallbackAgent, longestFact),
		NoFallback:    text.Plain(facts.NoFallback, longestDetail),
		Payload:       boundedPayload(facts.Payload), Identity: boundedIdentity(facts.Identity),
	}
	for name, identity := range facts.Identities {
		if len(name) > longestFact || len(kept.Identities) >= mostIdentities {
			continue
		}
		if kept.Identities == nil {
			kept.Identities = map[string]plan.IdentityFacts{}
		}
		kept.Identities[name] = boundedIdentity(identity)
	}
	if told := facts.CloudName; told != nil {
		kept.CloudName = &plan.CloudNameFacts{Platform: text.Plain(told.Platform, longestFact),
			Name: text.Plain(told.Name, longestFact), Error: text.Plain(told.Error, longestDetail)}
	}
	if told := facts.APIServer; told != nil {
		kept.APIServer = &plan.APIServerFacts{URL: text.Plain(told.URL, longestFact),
			Resolved: boundedAddresses(told.Resolved), Error: text.Plain(told.Error, longestDetail)}
	}
	*facts = kept
}

func boundedSystem(system host.SystemInfo) host.SystemInfo {
	for _, foreign := range []*string{
		&system.Product, &system.Edition, &system.Version, &system.Architecture, &system.HostName,
		&system.PendingHostName, &system.Domain, &system.MachineID, &system.BootID,
	} {
		*foreign = text.Plain(*foreign, longestFact)
	}
	system.Addresses = boundedAddresses(system.Addresses)
	return system
}

// boundedAddresses returns the first texts that are addresses.
func boundedAddresses(foreign []string) []string {
	var addresses []string
	for _, address := range foreign {
		if isAddress(address) && len(addresses) < mostAddresses {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// boundedPayload returns the payload files that the host has. One that is left out is sent again.
func boundedPayload(foreign map[string]string) map[string]string {
	if len(foreign) == 0 {
		return nil
	}
	kept := map[string]string{}
	for digest, path := range foreign {
		if len(digest) == digestLength && len(path) <= longestPath && len(kept) < mostFiles {
			kept[digest] = path
		}
	}
	return kept
}

// boundedIdentity returns a key's request and certificate. A request that is too long is left out, and so is not signed.
func boundedIdentity(identity plan.IdentityFacts) plan.IdentityFacts {
	if len(identity.Request) > longestRequest {
		identity.Request = ""
	}
	if told := identity.Current; told != nil {
		current := *told
		current.CommonName, current.Serial = text.Plain(told.CommonName, longestFact), text.Plain(told.Serial, longestFact)
		current.Organization = nil
		for _, organization := range told.Organization[:min(len(told.Organization), mostOrganizations)] {
			current.Organization = append(current.Organization, text.Plain(organization, longestFact))
		}
		identity.Current = &current
	}
	return identity
}

// boundPlan cuts what the operator keeps of a plan.
func boundPlan(p *plan.Plan) {
	if p == nil {
		return
	}
	for i := range p.Steps {
		p.Steps[i].Name = text.Plain(p.Steps[i].Name, longestFact)
		p.Steps[i].Reason = text.Plain(p.Steps[i].Reason, longestDetail)
	}
	p.Needs = slices.DeleteFunc(p.Needs, func(need nodespec.Need) bool { return len(need) > longestFact })
}

func isAddress(foreign string) bool {
	address, err := netip.ParseAddr(foreign)
	return err == nil && address.Zone() == ""
}
