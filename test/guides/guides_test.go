// Package guides runs the commands of the guides for administrators. A shell passes each line to kubectl's own code
// and a real API server, next to a running operator with a listed host and a Windows Machine.
package guides

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/fakeolm"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

const root = "../.."

var files = e2e.NewPayload(filepath.Join(root, "build/wicd.exe"), payload.Options{SizePercent: 25})

func TestMain(m *testing.M) {
	if _, is := os.LookupEnv(kubectlVariable); is {
		os.Exit(runKubectl(os.Args[1:]))
	}
	os.Exit(e2e.Main(m, files.Remove))
}

// notGuides lists documents without commands for administrators.
var notGuides = []string{"architecture.md", "benchmarks.md", "requirements.md", "verified.md", "cli.md"}

// notRun maps the prefix of each line that the lab cannot run to the reason.
var notRun = map[string]string{
	"kubectl windows":          "test/plugin runs the plugin",
	"oc windows":               "test/plugin runs the plugin",
	"oc project ":              "oc's own; the namespace of all other lines here",
	"oc registry login ":       "oc's own",
	"oc set data ":             "oc's own",
	"oc adm ":                  "oc's own",
	"oc debug ":                "oc's own",
	"kubectl get --raw ":       "a form of a command, of which the guide warns",
	"oc logs ":                 "no container runs in the lab; test/wine reads a pod's log",
	"oc create -f":             "a form of a command, without a file",
	"oc apply -f - <<END":      "it holds a request that openssl has made before",
	"oc get csr my-prometheus": "nothing made that request",
	"oc apply --server-side -k overlays/namespace":           "a second operator's rights conflict with the first one's; test/image runs it alone",
	"oc replace --force":                                     "a form of a command, without a file",
	"oc set env deployment/windows-machine-config-operator`": "a form of a command, without a variable",
}

// command is a line of a guide.
type command struct{ guide, line string }

var (
	block  = regexp.MustCompile(`(?m)^ {4,}((?:oc|kubectl) (?:.*\\\n)*.*)$`)
	inline = regexp.MustCompile("`((?:oc|kubectl) [a-z][^`]* [^`]+)`")
)

// guideCommands returns each line of the guides once.
func guideCommands(t *testing.T) (found []command) {
	t.Helper()
	documents, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	documents = append(documents, filepath.Join(root, "README.md"), filepath.Join(root, "HACKING.md"),
		filepath.Join(root, "examples/README.md"))
	seen := map[string]bool{}
	for _, document := range documents {
		if slices.Contains(notGuides, filepath.Base(document)) {
			continue
		}
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, pattern := range []*regexp.Regexp{block, inline} {
			for _, match := range pattern.FindAllStringSubmatch(string(text), -1) {
				line := strings.Join(strings.Fields(strings.ReplaceAll(match[1], "\\\n", " ")), " ")
				if !seen[line] {
					seen[line] = true
					found = append(found, command{filepath.Base(document), line})
				}
			}
		}
	}
	return found
}

// reasonNotToRun returns the matching prefix of notRun.
func reasonNotToRun(line string) string {
	for begin := range notRun {
		if strings.HasPrefix(line+"`", begin) {
			return begin
		}
	}
	return ""
}

//
func TestGuides_CommandsAcceptedByAPIServer(t *testing.T) {
	r := e2e.Boot(t, testenv.Options{
		Hosts: testenv.Hosts(1), MachineAPI: true, PayloadDir: files.Directory(t),
		ControlPlane: cluster.Options{Profile: cluster.OpenShift, Platform: "AWS", APIIntURL: "https://127.0.0.1"},
	})
	e2e.Install(t, r)
	fill := createObjects(t, r)
	dir := newWorkDirectory(t, r)
	variables := commandEnvironment(t, r, dir)
	all, left := guideCommands(t), map[string]bool{}
	if len(all) < 100 {
		t.Fatalf("only %d commands were found", len(all))
	}
	for _, c := range all {
		if begin := reasonNotToRun(c.line); begin != "" {
			left[begin] = true
			continue
		}
		t.Run(c.guide+": "+c.line, func(t *testing.T) {
			script := `oc() { "$` + kubectlVariable + `" "$@"; }` + "\n" + `kubectl() { oc "$@"; }` + "\n" + fill(c.line)
			scales := strings.HasSuffix(c.line, " replicas.yaml")
			if scales {
				script += " -o jsonpath='{.spec.replicas}'"
			}
			shell := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
			shell.Dir, shell.Env = dir, variables
			output, err := shell.CombinedOutput()
			if err != nil && !strings.Contains(string(output), "already exists") {
				t.Errorf("%s: %v:\n%s", fill(c.line), err, output)
			}
			if scales && !strings.Contains(string(output), "3") {
				t.Errorf("the MachineSet has not 3 replicas then: %s", output)
			}
		})
	}
	for begin := range notRun {
		if !left[begin] {
			t.Errorf("no guide has a command that begins with %q", begin)
		}
	}
}

// newWorkDirectory returns an administrator's directory: a checkout with the files that previous guides have created.
func newWorkDirectory(t *testing.T, r *testenv.Environment) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"deploy", "examples", "overlays"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(root, name))); err != nil {
			t.Fatal(err)
		}
	}
	machineSet, err := os.ReadFile(filepath.Join(root, "examples/machineset-aws.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile(filepath.Join(root, "docs/machinesets.md"))
	if err != nil {
		t.Fatal(err)
	}
	replicas := regexp.MustCompile("(?s)```yaml\n(apiVersion: machine.openshift.io/v1beta1\nkind: MachineSet\n.*?)```").FindSubmatch(guide)
	if replicas == nil {
		t.Fatal("docs/machinesets.md has no MachineSet that contains the replicas only")
	}
	files := map[string][]byte{"replicas.yaml": bytes.ReplaceAll(replicas[1], []byte("<name>"), []byte(machineSetName)), "machineset-aws.yaml": regexp.MustCompile(`<[a-z_]+>`).ReplaceAll(machineSet, []byte("lab"))}
	for _, key := range []string{"windows-nodes", "new", "old", "id_ed25519", "key"} {
		files[key] = r.PrivateKey()
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// machineSetName is the name of the Windows MachineSet that the commands act on.
const machineSetName = "windows"

// createObjects creates the objects that the guides mention, and returns a function that replaces the placeholders of a
// line.
func createObjects(t *testing.T, r *testenv.Environment) func(line string) string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.ListHosts(t.Context()))
	if _, err := r.RunOperator(); err != nil {
		t.Fatal(err)
	}
	const set = machineSetName
	must(r.CreateMachineSet(t.Context(), set, 1, testenv.MachineSetOptions{}))
	version := createOLMObjects(t, r)
	must(r.Apply(t.Context(), ovnkubeNode()))
	for _, name := range []string{"runtime-class.yaml", "win-webserver.yaml", "win-webserver-service.yaml"} {
		object, err := testenv.Example(name)
		must(err)
		if object.GetKind() != "RuntimeClass" {
			object.SetNamespace(r.Namespace())
		}
		must(r.Apply(t.Context(), object))
	}
	ctx, cancel := context.WithTimeout(t.Context(), e2e.WaitTimeout)
	defer cancel()
	must(r.WaitReady(ctx))
	machines, err := r.WaitMachinesReady(ctx, set, 1)
	must(err)
	var instances v1alpha1.WindowsInstanceList
	must(r.Client.List(t.Context(), &instances))
	instance := instances.Items[0]
	words := strings.NewReplacer("<node>", instance.Status.NodeRef.Name, "<path>", "key", "<fingerprint>", "abc", "<version>", version,
		"<windows_machine_set>", set, "<m>", machines[0], "<ns>", r.Namespace(), "NAME", instance.Name)
	return func(line string) string {
		name := instance.Name
		switch {
		case strings.Contains(line, "--for=delete"):
			name = "gone"
		case strings.Contains(line, " machineset "):
			name = set
		case strings.Contains(line, " machine "):
			name = machines[0]
		case strings.Contains(line, " installplan "):
			name = plan
		}
		return strings.ReplaceAll(words.Replace(line), "<name>", name)
	}
}

// ovnkubeNode returns the DaemonSet of OVN-Kubernetes as left by the network operator after hybrid networking was
// disabled.
func ovnkubeNode() *unstructured.Unstructured {
	labels := map[string]any{"app": "ovnkube-node"}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": map[string]any{
		"name": "ovnkube-node", "namespace": "openshift-ovn-kubernetes",
		"annotations": map[string]any{"networkoperator.openshift.io/hybrid-overlay-status": "disabled"},
	}, "spec": map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": map[string]any{
		"metadata": map[string]any{"labels": labels},
		"spec": map[string]any{"nodeSelector": map[string]any{"lab": "none"}, "containers": []any{
			map[string]any{"name": "ovnkube-controller", "image": "example.com/ovn:1"}}},
	}}}}
}

const plan = "install-lab"

// createOLMObjects creates the objects that OLM creates for an operator, and returns the version of the CSV.
func createOLMObjects(t *testing.T, r *testenv.Environment) string {
	t.Helper()
	definitions, err := fakeolm.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy/olm/bundle/manifests/windows-machine-config-operator.clusterserviceversion.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	csv := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &csv.Object); err != nil {
		t.Fatal(err)
	}
	if err := r.ApplyObjects(t.Context(), definitions); err != nil {
		t.Fatal(err)
	}
	subscription, err := testenv.Example("wmco-sub.yaml")
	if err != nil {
		t.Fatal(err)
	}
	installPlan := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operators.coreos.com/v1alpha1",
		"kind": "InstallPlan", "metadata": map[string]any{"name": plan}, "spec": map[string]any{"approval": "Manual",
			"approved": false, "clusterServiceVersionNames": []any{csv.GetName()}}}}
	for _, object := range []*unstructured.Unstructured{csv, installPlan, subscription} {
		object.SetNamespace(r.Namespace())
		if err := r.Apply(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return strings.TrimPrefix(csv.GetName(), "windows-machine-config-operator.v")
}
