package hostjobs

import (
	"net/netip"
	"slices"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// Limits of the facts that a host reports, in bytes. Facts are copied into the status, a line of a response may
// have megabytes, and an attacker in control of the host chooses the content. The limits are far beyond real
// Windows values, and keep the object within the size limit of the API server.
const (
	maxFactLength   = 256
	maxDetailLength = 1024
	// maxAddresses is the maximum number of addresses per host, including the address of the default route.
	maxAddresses = 64
	// digestLength is the length of a SHA-256 digest in hexadecimal. maxPathLength exceeds any path of the
	// operator.
	digestLength, maxPathLength = 64, 512
	// maxFiles is the maximum number of known payload files per host, and maxIdentities the maximum number of
	// keys. A payload has some dozens of files, and a node has three keys.
	maxFiles, maxIdentities = 1000, 16
	// maxRequestLength exceeds the size of a certificate request. maxOrganizations exceeds the number of
	// organizations in the operator's certificates.
	maxRequestLength, maxOrganizations = 16 << 10, 4
)

// boundedStep limits the texts and numbers of a step to readable sizes.
func boundedStep(step agentapi.Step) agentapi.Step {
	step.Name, step.Detail = sanitize.Plain(step.Name, maxFactLength), sanitize.Plain(step.Detail, maxDetailLength)
	step.Of = min(max(step.Of, 0), maxSteps)
	step.Index = min(max(step.Index, 0), step.Of)
	return step
}

// maxSteps is far beyond the number of steps in a plan.
const maxSteps = 1_000_000

// maxNames is the maximum number of names of one kind in a message.
const maxNames = 10

// boundResult limits the parts of a result that the operator keeps.
func boundResult(result *agentapi.Result) {
	boundFacts(result.Facts)
	boundPlan(result.Plan)
	boundChecks(result)
	result.NoRollbackReason = sanitize.Plain(result.NoRollbackReason, maxDetailLength)
	result.NotRestored = slices.Clone(result.NotRestored[:min(len(result.NotRestored), maxNames)])
	for i, name := range result.NotRestored {
		result.NotRestored[i] = sanitize.Plain(name, maxFactLength)
	}
}

// maxChecks is the maximum number of checks that a result keeps. A node has about twenty.
const maxChecks = 200

// boundChecks limits the number of checks and their texts.
func boundChecks(result *agentapi.Result) {
	result.Checks = slices.Clone(result.Checks[:min(len(result.Checks), maxChecks)])
	for i := range result.Checks {
		check := &result.Checks[i]
		check.Name, check.Message = sanitize.Plain(check.Name, maxFactLength), sanitize.Plain(check.Message, maxDetailLength)
	}
}

// boundFacts drops the facts that only the agent's own plan needs, which are the majority. It limits the
// remaining facts, because the operator keeps the facts of hundreds of hosts. The limits apply on receipt, so
// later comparisons use equally limited facts.
func boundFacts(facts *plan.Facts) {
	if facts == nil {
		return
	}
	kept := plan.Facts{
		Time: facts.Time, KubeletStarted: facts.KubeletStarted, System: boundedSystem(facts.System), Applied: sanitize.Plain(facts.Applied, maxFactLength),
		RollbackTarget: sanitize.Plain(facts.RollbackTarget, maxFactLength), PodSubnet: sanitize.Plain(facts.PodSubnet, maxFactLength),
		NodeName:         sanitize.Plain(facts.NodeName, maxFactLength),
		AppliedAgent:     sanitize.Plain(facts.AppliedAgent, maxFactLength),
		RollbackAgent:    sanitize.Plain(facts.RollbackAgent, maxFactLength),
		NoRollbackReason: sanitize.Plain(facts.NoRollbackReason, maxDetailLength),
		Payload:          boundedPayload(facts.Payload), Identity: boundedIdentity(facts.Identity),
	}
	for name, identity := range facts.Identities {
		if len(name) > maxFactLength || len(kept.Identities) >= maxIdentities {
			continue
		}
		if kept.Identities == nil {
			kept.Identities = map[string]plan.IdentityFacts{}
		}
		kept.Identities[name] = boundedIdentity(identity)
	}
	if told := facts.CloudName; told != nil {
		kept.CloudName = &plan.CloudNameFacts{Platform: sanitize.Plain(told.Platform, maxFactLength),
			Name: sanitize.Plain(told.Name, maxFactLength), Error: sanitize.Plain(told.Error, maxDetailLength)}
	}
	if told := facts.APIServer; told != nil {
		kept.APIServer = &plan.APIServerFacts{URL: sanitize.Plain(told.URL, maxFactLength),
			Resolved: boundedAddresses(told.Resolved), Error: sanitize.Plain(told.Error, maxDetailLength)}
	}
	*facts = kept
}

func boundedSystem(system host.SystemInfo) host.SystemInfo {
	for _, foreign := range []*string{
		&system.Product, &system.Edition, &system.Version, &system.Architecture, &system.HostName,
		&system.PendingHostName, &system.Domain, &system.MachineID, &system.BootID,
	} {
		*foreign = sanitize.Plain(*foreign, maxFactLength)
	}
	system.Addresses = boundedAddresses(system.Addresses)
	return system
}

// boundedAddresses returns the first valid addresses.
func boundedAddresses(foreign []string) []string {
	var addresses []string
	for _, address := range foreign {
		if isAddress(address) && len(addresses) < maxAddresses {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// boundedPayload returns the payload files on the host. The operator sends an omitted file again.
func boundedPayload(foreign map[string]string) map[string]string {
	if len(foreign) == 0 {
		return nil
	}
	kept := map[string]string{}
	for digest, path := range foreign {
		if len(digest) == digestLength && len(path) <= maxPathLength && len(kept) < maxFiles {
			kept[digest] = path
		}
	}
	return kept
}

// boundedIdentity returns the certificate request and the certificate of a key. A request beyond the limit is
// dropped and therefore not signed.
func boundedIdentity(identity plan.IdentityFacts) plan.IdentityFacts {
	if len(identity.Request) > maxRequestLength {
		identity.Request = ""
	}
	if told := identity.Current; told != nil {
		current := *told
		current.CommonName, current.Serial = sanitize.Plain(told.CommonName, maxFactLength), sanitize.Plain(told.Serial, maxFactLength)
		current.Organization = nil
		for _, organization := range told.Organization[:min(len(told.Organization), maxOrganizations)] {
			current.Organization = append(current.Organization, sanitize.Plain(organization, maxFactLength))
		}
		identity.Current = &current
	}
	return identity
}

// boundPlan limits the parts of a plan that the operator keeps.
func boundPlan(p *plan.Plan) {
	if p == nil {
		return
	}
	for i := range p.Steps {
		p.Steps[i].Name = sanitize.Plain(p.Steps[i].Name, maxFactLength)
		p.Steps[i].Reason = sanitize.Plain(p.Steps[i].Reason, maxDetailLength)
	}
	p.Needs = slices.DeleteFunc(p.Needs, func(need nodespec.Need) bool { return len(need) > maxFactLength })
}

func isAddress(foreign string) bool {
	address, err := netip.ParseAddr(foreign)
	return err == nil && address.Zone() == ""
}
