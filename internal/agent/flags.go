package agent

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/facts"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// versionVerb prints the version and nothing else.
const versionVerb verb.Name = "version"

// input is a command line.
type input struct {
	verb    verb.Name
	spec    string // path
	payload string // path; empty when nothing was sent
	// digest identifies the spec that the host is to be rolled back to.
	digest string
	// fallback is the digest of the spec that is kept for a rollback if it is the host's when the verb begins.
	fallback string
	// bootID is the boot that a restart is to end.
	bootID string
	// renewals are the names of the identities whose certificates are to be renewed, and certificates those in PEM that
	// have been signed.
	renewals     []string
	certificates map[string]string
	// platform is the cloud whose metadata service the verb facts is to ask for the machine's name; empty when it is not.
	platform string
	// apiServer is what the verbs facts and look are to connect to; nil when nothing is.
	apiServer *facts.APIServer
	// events is of how long ago the verb survey is to tell events, and nothing else; 0 when it is to tell everything.
	events time.Duration
}

const usage = "usage: wicd facts [--api-server https://HOST:PORT] [--platform AWS|GCP] | look [--api-server https://HOST:PORT] | survey [--events last:DURATION] | plan SPEC | apply SPEC [--fallback sha256:HEX] | verify | " +
	"rollback [--digest sha256:HEX] | settle | reboot --boot-id boot:ID | renew --identity NAME [...] [--identity-certificate NAME:BASE64URL [...]] | remove | service | version, " +
	"where SPEC is --spec FILE [--payload FILE]"

// known are the verbs of a command line.
func known() []verb.Name {
	return []verb.Name{
		verb.Facts, verb.Look, verb.Survey, verb.Plan, verb.Apply, verb.Verify, verb.Rollback, verb.Settle, verb.Reboot, verb.Renew, verb.Remove, verb.Service,
		versionVerb,
	}
}

func parse(args []string) (input, error) {
	if len(args) == 0 {
		return input{}, fmt.Errorf("no verb given; %s", usage)
	}
	in := input{verb: verb.Name(args[0])}
	if !slices.Contains(known(), in.verb) {
		return input{}, fmt.Errorf("there is no verb %q; %s", args[0], usage)
	}
	flags := in.flags()
	if err := flags.Parse(args[1:]); err != nil {
		return input{}, fmt.Errorf("%s: %w; %s", in.verb, err, usage)
	}
	fault := in.fault()
	if flags.NArg() > 0 {
		fault = fmt.Sprintf("%q is not expected", flags.Arg(0))
	}
	if fault != "" {
		return input{}, fmt.Errorf("%s: %s; %s", in.verb, fault, usage)
	}
	return in, nil
}

// fault says which flag a verb lacks that it cannot do without; empty when it lacks none.
func (in *input) fault() string {
	switch {
	case (in.verb == verb.Plan || in.verb == verb.Apply) && in.spec == "":
		return "--spec is needed"
	case in.verb == verb.Reboot && in.bootID == "":
		return "--boot-id is needed"
	case in.verb == verb.Renew && len(in.renewals) == 0:
		return "--identity is needed"
	}
	return ""
}

// flags returns the flags of the input's verb; parsing them fills in the input.
func (in *input) flags() *flag.FlagSet {
	flags := flag.NewFlagSet(string(in.verb), flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	switch in.verb {
	case verb.Facts:
		flags.Func("api-server", "the API server's URL, to which the host is to connect", in.setAPIServer)
		flags.Func("platform", "the cloud whose metadata service is to tell the machine's name", in.setPlatform)
	case verb.Look:
		flags.Func("api-server", "the API server's URL, to which the host is to connect", in.setAPIServer)
	case verb.Survey:
		flags.Func("events", "of how long ago events are to be told, after the word last:, and nothing else", in.setEvents)
	case verb.Plan, verb.Apply:
		flags.StringVar(&in.spec, "spec", "", "the NodeSpec")
		flags.StringVar(&in.payload, "payload", "", "an archive with the files that the host lacks")
		if in.verb == verb.Apply {
			flags.Func("fallback", "the digest of the NodeSpec which lies on the host and is kept there for a rollback", in.setFallback)
		}
	case verb.Renew:
		flags.Func("identity", "the name of an identity whose certificate is to be renewed", in.addRenewal)
		flags.Func("identity-certificate", "its certificate chain, DER in base64url, after its name and a colon", in.setIdentityCertificate)
	case verb.Rollback:
		flags.StringVar(&in.digest, "digest", "", "the digest of the fallback: a host that was rolled back to it already is right")
	case verb.Reboot:
		flags.Func("boot-id", "the boot that the restart is to end, after the word boot:", in.setBootID)
	}
	return flags
}

// setFallback refuses what no NodeSpec could have: it would go unnoticed until there is nothing to go back to.
func (in *input) setFallback(word string) error {
	if !strings.HasPrefix(word, "sha256:") {
		return fmt.Errorf("%q is not a digest", word)
	}
	in.fallback = word
	return nil
}

// setBootID takes the boot ID with a word before it, without which a shell could take it for a number.
func (in *input) setBootID(word string) error {
	id, ok := strings.CutPrefix(word, "boot:")
	if !ok || id == "" {
		return fmt.Errorf("%q is not the word boot: with a boot ID behind it", word)
	}
	in.bootID = id
	return nil
}

// setEvents takes a duration with a word before it, as setBootID.
func (in *input) setEvents(word string) error {
	duration, ok := strings.CutPrefix(word, "last:")
	since, err := time.ParseDuration(duration)
	if !ok || err != nil || since <= 0 {
		return fmt.Errorf("%q is not the word last: with a duration behind it", word)
	}
	in.events = since
	return nil
}

func (in *input) setAPIServer(word string) (err error) {
	in.apiServer, err = facts.ParseAPIServer(word)
	return err
}
