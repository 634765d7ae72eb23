package agent

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// versionVerb prints the version and nothing else.
const versionVerb verb.Name = "version"

// input is a command line.
type input struct {
	verb    verb.Name
	spec    string // path
	payload string // path; empty when nothing was sent
	// digest is that of the spec which the host has from before, with these answers in it, in place of a spec that was sent.
	digest  string
	answers nodespec.Answers
	// apiServer is what the verb facts is to connect to; nil when nothing is.
	apiServer *apiServer
}

const usage = "usage: wicd facts [--api-server https://HOST:PORT] | plan SPEC | apply SPEC | verify | remove | service | version, " +
	"where SPEC is --spec FILE [--payload FILE] | --digest sha256:HEX [--certificate BASE64URL] [--pod-subnet CIDR]"

func parse(args []string) (input, error) {
	if len(args) == 0 {
		return input{}, fmt.Errorf("no verb given; %s", usage)
	}
	in := input{verb: verb.Name(args[0])}
	known := []verb.Name{verb.Facts, verb.Plan, verb.Apply, verb.Verify, verb.Remove, verb.Service, versionVerb}
	if !slices.Contains(known, in.verb) {
		return input{}, fmt.Errorf("there is no verb %q; %s", args[0], usage)
	}
	takesSpec := in.verb == verb.Plan || in.verb == verb.Apply
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	if takesSpec {
		flags.StringVar(&in.spec, "spec", "", "the NodeSpec")
		flags.StringVar(&in.payload, "payload", "", "an archive with the files that the host lacks")
		flags.StringVar(&in.digest, "digest", "", "in place of a NodeSpec: that of the one which lies on the host, once it has the answers")
		flags.Func("certificate", "the kubelet's certificate chain, DER in base64url", in.setCertificate)
		flags.StringVar(&in.answers.PodSubnet, "pod-subnet", "", "the node's pod subnet")
	}
	if in.verb == verb.Facts {
		flags.Func("api-server", "the API server's URL, to which the host is to connect", in.setAPIServer)
	}
	if err := flags.Parse(args[1:]); err != nil {
		return input{}, fmt.Errorf("%s: %w; %s", in.verb, err, usage)
	}
	switch {
	case flags.NArg() > 0:
		return input{}, fmt.Errorf("%s: %q is not expected; %s", in.verb, flags.Arg(0), usage)
	case takesSpec && (in.spec == "") == (in.digest == ""):
		return input{}, fmt.Errorf("%s: one of --spec and --digest is needed; %s", in.verb, usage)
	case in.spec != "" && in.answers != nodespec.Answers{}:
		return input{}, fmt.Errorf("%s: a spec that is sent holds its answers; %s", in.verb, usage)
	case in.digest != "" && in.payload != "":
		return input{}, fmt.Errorf("%s: --payload goes with --spec; %s", in.verb, usage)
	}
	return in, nil
}

func (in *input) setAPIServer(word string) (err error) {
	in.apiServer, err = parseAPIServer(word)
	return err
}

func (in *input) setCertificate(word string) error {
	der, err := base64.RawURLEncoding.DecodeString(word)
	if err != nil {
		return fmt.Errorf("not base64url: %w", err)
	}
	chain, err := x509.ParseCertificates(der)
	if err != nil {
		return fmt.Errorf("not a certificate: %w", err)
	}
	for _, certificate := range chain {
		in.answers.Certificate += string(pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: certificate.Raw}))
	}
	return nil
}
