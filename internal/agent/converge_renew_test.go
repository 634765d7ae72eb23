package agent_test

import (
	"encoding/base64"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// cloud is the identity of a service besides the kubelet.
var cloud = nodespec.Identity{
	Name: "cloud-node-manager", Directory: `C:\k\cloud-node-manager\pki`,
	CommonName: "system:cloud-node-manager:node-a", Organization: "system:cloud-node-managers",
}

// withCloud adds the identity, and a service that needs the identity: the idle service of the test payload.
func withCloud(spec nodespec.NodeSpec) nodespec.NodeSpec {
	spec.Identities = []nodespec.Identity{cloud}
	spec.Directories = append(slices.Clone(spec.Directories),
		nodespec.Directory{Path: `C:\k\cloud-node-manager`, Access: host.AccessAdministrators},
		nodespec.Directory{Path: cloud.Directory, Access: host.AccessAdministrators})
	spec.Services = slices.Clone(spec.Services)
	for i := range spec.Services {
		if spec.Services[i].Name == "containerd" {
			spec.Services[i].Needs = append(spec.Services[i].Needs, nodespec.NeedCertificateOf(cloud.Name))
		}
	}
	return spec
}

// newIdentifiedHost returns a host with the identity, configured as far as possible without a pod network.
func newIdentifiedHost(t *testing.T) (*rig, nodespec.NodeSpec) {
	t.Helper()
	r := newRig(t).start()
	spec := withCloud(newSpec(nil))
	boot := r.BootID()
	line, _ := r.apply(spec)
	if line.Type == agentapi.TypeRebooting {
		r.awaitBoot(boot)
		line, _ = r.apply(spec)
	}
	if line.Type != agentapi.TypeResult {
		t.Fatalf("%s %v", line.Type, line.Failure)
	}
	want := []nodespec.Need{nodespec.NeedCertificate, nodespec.NeedCertificateOf(cloud.Name)}
	if !slices.Equal(line.Result.Plan.Needs[:2], want) {
		t.Fatalf("needs %q", line.Result.Plan.Needs)
	}
	spec = spec.WithCertificate("", r.signRequest(line.Result.Facts.Identity.Request))
	spec = spec.WithCertificate(cloud.Name, r.signRequest(line.Result.Facts.Identities[cloud.Name].Request))
	if line, _ = r.apply(spec); line.Type != agentapi.TypeResult {
		t.Fatalf("%s %v", line.Type, line.Failure)
	}
	return r, spec
}

func certificateWord(certificate string) string {
	block, _ := pem.Decode([]byte(certificate))
	return base64.RawURLEncoding.EncodeToString(block.Bytes)
}

func certificateTarget(r *rig) string {
	r.Helper()
	info, err := r.Drive().Stat(cloud.Path(nodespec.CurrentCertificate))
	r.must(err)
	return info.LinkTarget
}

//
func TestIdentity_CertificateInstalledWithKubelets(t *testing.T) {
	t.Parallel()
	r, spec := newIdentifiedHost(t)
	t.Run("gets its certificate with the kubelet's, in one go", func(t *testing.T) {
		data, err := r.Drive().ReadFile(cloud.Path(nodespec.CurrentCertificate))
		if err != nil || !strings.Contains(string(data), "PRIVATE KEY") || !strings.Contains(string(data), strings.TrimSpace(spec.Identities[0].Certificate)) {
			t.Errorf("the file has no certificate with its key (%v)", err)
		}
		if !strings.HasPrefix(certificateTarget(r), cloud.Directory+`\cloud-node-manager-client-20`) {
			t.Errorf("the link leads to %s", certificateTarget(r))
		}
		service, _ := r.Service("containerd")
		if service.State != host.ServiceRunning {
			t.Errorf("the service that needs it is %s", service.State)
		}
	})
	t.Run("its key is for administrators only, and never told", func(t *testing.T) {
		for _, path := range []string{cloud.Directory, certificateTarget(r)} {
			info, err := r.Drive().Stat(path)
			if err != nil || info.Access != host.AccessAdministrators {
				t.Errorf("%s may be used by %s (%v)", path, info.Access, err)
			}
		}
		line, _ := r.run(append([]string{"plan"}, r.sendSpec(spec)...)...)
		encoded, err := line.Encode()
		if err != nil || strings.Contains(string(encoded), "PRIVATE") {
			t.Errorf("facts hold a key (%v)", err)
		}
	})
	t.Run("nothing is left to be done for it", func(t *testing.T) {
		if p := r.runPlan(spec); slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return strings.Contains(s.Name, "Certificate") }) {
			t.Error(formatSteps(p))
		}
	})
}

func TestRenewal(t *testing.T) {
	t.Parallel()
	t.Run("puts a new certificate in place, and touches nothing else", func(t *testing.T) {
		t.Parallel()
		r, spec := newIdentifiedHost(t)
		former := certificateTarget(r)
		old, err := r.Drive().ReadFile(former)
		r.must(err)
		before := r.Snapshot()

		line, steps := r.run("renew", "--identity", cloud.Name)
		if line.Type != agentapi.TypeResult || !slices.Equal(steps, []string{"RequestCertificate " + cloud.CommonName}) ||
			!slices.Equal(line.Result.Plan.Needs, []nodespec.Need{nodespec.NeedCertificateOf(cloud.Name)}) {
			t.Fatalf("%s %v, steps %q", line.Type, line.Failure, steps)
		}
		request := line.Result.Facts.Identities[cloud.Name].Request
		if certificateTarget(r) != former {
			t.Error("the certificate in use is gone before there is another")
		}
		if again, steps := r.run("renew", "--identity", cloud.Name); len(steps) > 0 || again.Result.Facts.Identities[cloud.Name].Request != request {
			t.Error("an operator that asks again gets another key")
		}
		certificate := r.signRequest(request)
		args := []string{"renew", "--identity", cloud.Name, "--identity-certificate", cloud.Name + ":" + certificateWord(certificate)}
		line, steps = r.run(args...)
		if line.Type != agentapi.TypeResult || !slices.Equal(steps, []string{"InstallCertificate " + cloud.CommonName}) || len(line.Result.Plan.Needs) > 0 {
			t.Fatalf("%s %v, steps %q", line.Type, line.Failure, steps)
		}
		data, err := r.Drive().ReadFile(cloud.Path(nodespec.CurrentCertificate))
		if err != nil || !strings.Contains(string(data), strings.TrimSpace(certificate)) || string(data) == string(old) {
			t.Errorf("the file has not the new certificate (%v)", err)
		}
		after := r.Snapshot()
		diff := cmp.Diff(before.Services, after.Services)
		if diff != "" {
			t.Errorf("services were touched:\n%s", diff)
		}
		if line, _ := r.apply(spec); line.Result == nil || line.Result.Facts.Identities[cloud.Name].Request != "" {
			t.Error("the key still waits")
		}
	})
	t.Run("does not take what was not signed for its key", func(t *testing.T) {
		t.Parallel()
		r, spec := newIdentifiedHost(t)
		former := certificateTarget(r)
		line, steps := r.run("renew", "--identity", cloud.Name, "--identity-certificate", cloud.Name+":"+certificateWord(spec.Identities[0].Certificate))
		if line.Type != agentapi.TypeResult || len(line.Result.Plan.Needs) != 1 || slices.Contains(steps, "InstallCertificate "+cloud.CommonName) || certificateTarget(r) != former {
			t.Errorf("%s %v, steps %q", line.Type, line.Failure, steps)
		}
	})
	t.Run("of a host that is no node is refused", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		if line, _ := r.run("renew", "--identity", cloud.Name); line.Type != agentapi.TypeFailure || line.Failure.Reason != agentapi.ReasonSpecNotFound {
			t.Errorf("%s %v", line.Type, line.Failure)
		}
	})
	t.Run("of an identity that the node has not does nothing", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		line, steps := r.run("renew", "--identity", "another")
		if line.Type != agentapi.TypeResult || len(steps) > 0 || len(line.Result.Plan.Needs) > 0 {
			t.Errorf("%s %v, steps %q", line.Type, line.Failure, steps)
		}
	})
}

func TestFlags_InvalidIdentityRejected(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	for name, args := range map[string]string{
		"a renewal of nothing":                  "renew",
		"a name that is a path":                 `renew --identity ..\..\kubelet`,
		"a name with capitals":                  "renew --identity Kubelet",
		"a certificate without a name":          "renew --identity a --identity-certificate :MIIB",
		"a certificate without a colon":         "renew --identity a --identity-certificate MIIB",
		"an invalid certificate":                "renew --identity a --identity-certificate a:AAAA",
		"a certificate of an apply of a file":   `apply --spec C:\a.json --identity-certificate a:AAAA`,
		"a platform that is more than one word": "facts --platform AWS/../x",
	} {
		t.Run(name, func(t *testing.T) {
			line, _ := r.run(strings.Fields(args)...)
			if line.Type != agentapi.TypeFailure || line.Failure.Reason != agentapi.ReasonInvalidInput {
				t.Errorf("%s %v", line.Type, line.Failure)
			}
		})
	}
}
