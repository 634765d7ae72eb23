package agent

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/facts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
)

// versionCommand prints only the version.
const versionCommand agentapi.Name = "version"

// input is a parsed command line.
type input struct {
	command agentapi.Name
	spec    string // path
	payload string // path; empty if no payload was sent
	// digest identifies the rollback target.
	digest string
	// rollbackTarget is the digest of the spec to keep for a rollback if it is the current spec when the command
	// starts.
	rollbackTarget string
	// inService is true for a node with pods, which the command must not disrupt.
	inService bool
	// patch is the path of a patch of the agent.
	patch string
	// bootID is the boot that a restart must end.
	bootID string
	// renewals are the names of the identities to renew, and certificates the signed certificates in PEM.
	renewals     []string
	certificates map[string]string
	// platform is the cloud for the machine name query of the command facts; empty for no query.
	platform string
	// apiServer is the connection target of the commands facts and inspect; nil for none.
	apiServer *facts.APIServer
	// events is the maximum age of the events that collect reports; 0 if collect reports everything.
	events time.Duration
}

const usage = "usage: wicd facts [--api-server https://HOST:PORT] [--platform AWS|GCP] | inspect [--api-server https://HOST:PORT] | collect [--events last:DURATION] | plan SPEC | apply SPEC [--rollback-to sha256:HEX] [--in-service] | verify | " +
	"rollback [--digest sha256:HEX] | commit | patch --patch FILE | reboot --boot-id boot:ID | renew --identity NAME [...] [--identity-certificate NAME:BASE64URL [...]] | remove | service | version, " +
	"where SPEC is --spec FILE [--payload FILE]"

// commandNames returns the commands of a command line.
func commandNames() []agentapi.Name {
	return []agentapi.Name{
		agentapi.Facts, agentapi.Inspect, agentapi.Collect, agentapi.Plan, agentapi.Apply, agentapi.Verify, agentapi.Rollback, agentapi.Commit, agentapi.Patch, agentapi.Reboot, agentapi.Renew, agentapi.Remove, agentapi.Service,
		versionCommand,
	}
}

func parseArgs(args []string) (input, error) {
	if len(args) == 0 {
		return input{}, fmt.Errorf("no command given; %s", usage)
	}
	in := input{command: agentapi.Name(args[0])}
	if !slices.Contains(commandNames(), in.command) {
		return input{}, fmt.Errorf("unknown command %q; %s", args[0], usage)
	}
	flags := in.newFlagSet()
	if err := flags.Parse(args[1:]); err != nil {
		return input{}, fmt.Errorf("%s: %w; %s", in.command, err, usage)
	}
	fault := in.describeMissingFlag()
	if flags.NArg() > 0 {
		fault = fmt.Sprintf("unexpected argument %q", flags.Arg(0))
	}
	if fault != "" {
		return input{}, fmt.Errorf("%s: %s; %s", in.command, fault, usage)
	}
	return in, nil
}

// describeMissingFlag names a missing required flag of a command; empty if none is missing.
func (in *input) describeMissingFlag() string {
	switch {
	case (in.command == agentapi.Plan || in.command == agentapi.Apply) && in.spec == "":
		return "--spec is required"
	case in.command == agentapi.Patch && in.patch == "":
		return "--patch is required"
	case in.command == agentapi.Reboot && in.bootID == "":
		return "--boot-id is required"
	case in.command == agentapi.Renew && len(in.renewals) == 0:
		return "--identity is required"
	}
	return ""
}

// newFlagSet returns the flags of the command; parsing sets the fields of the input.
func (in *input) newFlagSet() *flag.FlagSet {
	flags := flag.NewFlagSet(string(in.command), flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	switch in.command {
	case agentapi.Facts:
		flags.Func("api-server", "URL of the API server that the host must reach", in.setAPIServer)
		flags.Func("platform", "platform whose metadata service returns the machine name", in.setPlatform)
	case agentapi.Inspect:
		flags.Func("api-server", "URL of the API server that the host must reach", in.setAPIServer)
	case agentapi.Collect:
		flags.Func("events", "maximum age of the events to report, with the prefix last:; only events are reported", in.setEvents)
	case agentapi.Plan, agentapi.Apply:
		flags.StringVar(&in.spec, "spec", "", "path of the NodeSpec file")
		flags.StringVar(&in.payload, "payload", "", "archive with the files that the host lacks")
		if in.command == agentapi.Apply {
			flags.Func("rollback-to", "digest of the NodeSpec on the host to keep as the rollback target", in.setRollbackTarget)
			flags.BoolVar(&in.inService, "in-service", false, "return a plan without applying it if it disrupts pods")
		}
	case agentapi.Patch:
		flags.StringVar(&in.patch, "patch", "", "patch from this agent to another version")
	case agentapi.Renew:
		flags.Func("identity", "name of an identity to renew the certificate for", in.addRenewal)
		flags.Func("identity-certificate", "identity name and certificate chain (DER in base64url), separated by a colon", in.setIdentityCertificate)
	case agentapi.Rollback:
		flags.StringVar(&in.digest, "digest", "", "digest of the rollback target; also valid if the host is already rolled back to it")
	case agentapi.Reboot:
		flags.Func("boot-id", "boot ID before the restart, with the prefix boot:", in.setBootID)
	}
	return flags
}

// setRollbackTarget rejects values that cannot be a digest: such an error would otherwise go unnoticed until a
// rollback is needed.
func (in *input) setRollbackTarget(word string) error {
	if !strings.HasPrefix(word, "sha256:") {
		return fmt.Errorf("%q is not a digest", word)
	}
	in.rollbackTarget = word
	return nil
}

// setBootID parses a boot ID with a prefix, without which a shell could interpret the ID as a number.
func (in *input) setBootID(word string) error {
	id, ok := strings.CutPrefix(word, "boot:")
	if !ok || id == "" {
		return fmt.Errorf("%q is not of the form boot:ID", word)
	}
	in.bootID = id
	return nil
}

// setEvents parses a duration with a prefix, like setBootID.
func (in *input) setEvents(word string) error {
	duration, ok := strings.CutPrefix(word, "last:")
	since, err := time.ParseDuration(duration)
	if !ok || err != nil || since <= 0 {
		return fmt.Errorf("%q is not of the form last:DURATION", word)
	}
	in.events = since
	return nil
}

func (in *input) setAPIServer(word string) (err error) {
	in.apiServer, err = facts.ParseAPIServer(word)
	return err
}
