package machinesets

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/cmdutil"
	"github.com/windows-machine-config/wmco/internal/machineset"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
)

var lab = clustertest.New(cluster.Options{Profile: cluster.OpenShift})

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }

// fixture is a cluster on a platform with one MachineSet of Linux workers, and a working directory.
type fixture struct {
	t              *testing.T
	client         client.Client
	findAMI        findImage
	stdout, stderr bytes.Buffer
}

// fileName is the output file of the command in the tests and in hack/machineset.sh.
const fileName = "MachineSet.yaml"

func newFixture(t *testing.T, platform configv1.PlatformType) *fixture {
	t.Helper()
	c, err := (&command{Access: newAccess(t, &bytes.Buffer{}, &bytes.Buffer{})}).newStrictClient()
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, client: c, findAMI: func(_ context.Context, region, version string) (string, string, error) {
		return "ami-0123456789abcdef0", "Windows_Server-" + version + "-in-" + region, nil
	}}
	t.Chdir(t.TempDir())
	infrastructure := &configv1.Infrastructure{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "cluster"}, infrastructure); err != nil {
		t.Fatal(err)
	}
	infrastructure.Status.Platform = platform //nolint:staticcheck // the API server refuses a status whose two fields differ
	infrastructure.Status.PlatformStatus = &configv1.PlatformStatus{Type: platform}
	if err := c.Status().Update(t.Context(), infrastructure); err != nil {
		t.Fatal(err)
	}
	return f
}

// newAccess returns the access to the lab's cluster.
func newAccess(t *testing.T, stdout, stderr *bytes.Buffer) *cmdutil.Access {
	t.Helper()
	a := cmdutil.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: stdout, ErrOut: stderr}, clock.RealClock{})
	*a.Flags.KubeConfig = lab.Cluster(t).Kubeconfig
	return a
}

// createWorkerSet creates a MachineSet with the provider spec in testdata, with replaced texts.
func (f *fixture) createWorkerSet(name, file string, replace ...string) {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(testdata, file))
	if err != nil {
		f.t.Fatal(err)
	}
	value, err := yaml.YAMLToJSON([]byte(strings.NewReplacer(replace...).Replace(string(data))))
	if err != nil {
		f.t.Fatal(err)
	}
	labels := map[string]string{machineset.LabelMachineSet: name, machineset.LabelMachineRole: "worker",
		machineset.LabelMachineType: "worker"}
	set := &machinev1beta1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: name},
		Spec: machinev1beta1.MachineSetSpec{
			Replicas: ptr.To[int32](0),
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{machineset.LabelMachineSet: name}},
			Template: machinev1beta1.MachineTemplateSpec{
				ObjectMeta: machinev1beta1.ObjectMeta{Labels: labels},
				Spec:       machinev1beta1.MachineSpec{ProviderSpec: machinev1beta1.ProviderSpec{Value: &runtime.RawExtension{Raw: value}}},
			},
		},
	}
	if err := f.client.Create(f.t.Context(), set); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := f.client.Delete(context.Background(), set); client.IgnoreNotFound(err) != nil {
			f.t.Error(err)
		}
	})
}

// testdata is an absolute path: the tests change to other working directories.
var testdata = func() string {
	path, err := filepath.Abs("testdata")
	if err != nil {
		panic(err)
	}
	return path
}()

// run runs kubectl windows machineset.
func (f *fixture) run(arguments ...string) error {
	f.t.Helper()
	f.stdout.Reset()
	f.stderr.Reset()
	group := newCommand(newAccess(f.t, &f.stdout, &f.stderr), f.findAMI)
	group.SilenceUsage, group.SilenceErrors = true, true
	group.SetOut(&f.stdout)
	group.SetErr(&f.stderr)
	group.SetArgs(arguments)
	return group.ExecuteContext(f.t.Context())
}

// expectSuccess runs the command and ends the test if the command fails.
func (f *fixture) expectSuccess(arguments ...string) {
	f.t.Helper()
	if err := f.run(arguments...); err != nil {
		f.t.Fatalf("%v: %v", arguments, err)
	}
}

// expectFailure runs the command, which must fail with an error that contains a text.
func (f *fixture) expectFailure(text string, arguments ...string) {
	f.t.Helper()
	if err := f.run(arguments...); err == nil || !strings.Contains(err.Error(), text) {
		f.t.Errorf("%v: %v, want %q", arguments, err, text)
	}
	if f.readOutputFile() != "" || f.stdout.Len() > 0 {
		f.t.Errorf("%v has written something", arguments)
	}
}

// readOutputFile returns the written file, or "" without a file.
func (f *fixture) readOutputFile() string {
	f.t.Helper()
	data, err := os.ReadFile(fileName)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		f.t.Fatal(err)
	}
	return string(data)
}

func (f *fixture) get(name string) (*machinev1beta1.MachineSet, error) {
	set := &machinev1beta1.MachineSet{}
	return set, f.client.Get(f.t.Context(), client.ObjectKey{Namespace: v1alpha1.MachineNamespace, Name: name}, set)
}

var update = flag.Bool("update", false, "write the golden files")

//
func TestCommand_GenerateApplyDeleteOnEachPlatform(t *testing.T) {
	for _, test := range []struct {
		platform   configv1.PlatformType
		file, name string
		args       []string
	}{
		{configv1.AWSPlatformType, "aws.yaml", "-windows-worker-us-east-1a", nil},
		{configv1.AzurePlatformType, "azure.yaml", "winworker", nil},
		{configv1.GCPPlatformType, "gcp.yaml", "-windows-worker-b", nil},
		{configv1.VSpherePlatformType, "vsphere.yaml", "winworker", []string{"--template=/dc1/vm/windows"}},
	} {
		t.Run(string(test.platform), func(t *testing.T) {
			f := newFixture(t, test.platform)
			f.createWorkerSet("linux-workers", test.file)
			f.expectSuccess(append(test.args, "generate", "--replicas=0")...)
			written := f.stdout.String()
			f.compareGolden("generated-"+test.file, written)
			set := &machinev1beta1.MachineSet{}
			if err := yaml.UnmarshalStrict([]byte(written), set); err != nil {
				t.Fatalf("%v\n%s", err, written)
			}
			if !strings.HasSuffix(set.Name, test.name) {
				t.Errorf("it is named %s", set.Name)
			}
			// The client validates strictly.
			if err := f.client.Create(t.Context(), set.DeepCopy(), client.DryRunAll); err != nil {
				t.Errorf("the API server refuses what was written: %v", err)
			}

			f.expectSuccess(append(test.args, "apply", "--replicas=0")...)
			created, err := f.get(set.Name)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(created.Spec.Template.Spec.ProviderSpec.Value.Raw),
				string(set.Spec.Template.Spec.ProviderSpec.Value.Raw); got != want {
				t.Errorf("created: %s\nwritten: %s", got, want)
			}
			f.expectFailure("exists already", append(test.args, "apply")...)

			f.expectFailure("use --yes to confirm", "delete")
			if _, err := f.get(set.Name); err != nil {
				t.Errorf("it was deleted without a yes: %v", err)
			}
			f.expectSuccess("delete", "--yes")
			if _, err := f.get(set.Name); !apierrors.IsNotFound(err) {
				t.Errorf("after delete: %v", err)
			}
			f.expectFailure("not found", "delete", "--yes")
		})
	}
}

// compareGolden compares a MachineSet with its golden file, with cluster-1 as the name of the cluster's infrastructure.
func (f *fixture) compareGolden(name, got string) {
	f.t.Helper()
	infrastructure := &configv1.Infrastructure{}
	if err := f.client.Get(f.t.Context(), client.ObjectKey{Name: "cluster"}, infrastructure); err != nil {
		f.t.Fatal(err)
	}
	got = strings.ReplaceAll(got, infrastructure.Status.InfrastructureName, "cluster-1")
	path := filepath.Join(testdata, name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			f.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		f.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		f.t.Errorf("%s (-want +got); go test ./internal/plugin/machinesets -update writes it:\n%s", name, diff)
	}
}

//
func TestCommand_UnsupportedPlatformsRejected(t *testing.T) {
	for _, platform := range []configv1.PlatformType{configv1.NonePlatformType, configv1.NutanixPlatformType} {
		f := newFixture(t, platform)
		for _, action := range []string{"generate", "apply", "delete"} {
			f.expectFailure(`cannot generate a MachineSet for platform "`+string(platform)+`"`, action)
		}
	}
}

//
func TestUsage(t *testing.T) {
	f := newFixture(t, configv1.AzurePlatformType)
	f.createWorkerSet("linux-workers", "azure.yaml")
	for _, args := range [][]string{
		{"create"}, {"Apply"}, {"apply", "delete"}, {"--unknown"}, {"generate", "--unknown"}, {"generate", "--version=2016"},
		{"generate", "--version"}, {"generate", "--replicas=-1"}, {"generate", "--replicas=many"},
		{"generate", "--image=a", "--template=b"}, {"delete", "--image=a"}, {""},
	} {
		f.expectFailure("", args...)
		if !strings.Contains(f.stderr.String(), "Usage:") {
			t.Errorf("%v is refused without its usage: %s", args, f.stderr.String())
		}
	}
	f.expectSuccess("--help")
	if !strings.Contains(f.stdout.String(), "Usage:") || f.stderr.Len() > 0 {
		t.Errorf("help goes to the wrong place: %s", f.stderr.String())
	}
}

func TestGenerate_SelectsWorkerMachineSet(t *testing.T) {
	f := newFixture(t, configv1.AWSPlatformType)
	t.Run("without any it says so", func(t *testing.T) {
		f.expectFailure("no worker MachineSet", "generate")
	})
	f.createWorkerSet("workers-b", "aws.yaml", "us-east-1a", "us-east-1b")
	f.createWorkerSet("workers-c", "aws.yaml", "us-east-1a", "us-east-1c")
	zone := func(args ...string) string {
		f.expectSuccess(append([]string{"generate"}, args...)...)
		_, after, _ := strings.Cut(f.stdout.String(), "availabilityZone: ")
		zone, _, _ := strings.Cut(after, "\n")
		return zone
	}
	for want, args := range map[string][]string{"us-east-1b": nil, "us-east-1c": {"--zone=us-east-1c"}} {
		if got := zone(args...); got != want {
			t.Errorf("%v: %s", args, got)
		}
	}
	if got := zone("--from=workers-c"); got != "us-east-1c" {
		t.Error(got)
	}
	f.expectFailure("use a worker MachineSet of that zone", "generate", "--zone=us-east-1f")
	f.expectFailure("These are: workers-b, workers-c", "generate", "--from=workers-a")
	t.Run("a Windows MachineSet is not among them", func(t *testing.T) {
		f.expectSuccess("apply", "--name=a-windows", "--replicas=0")
		f.expectFailure("is not a MachineSet for Linux workers", "generate", "--from=a-windows")
		f.expectSuccess("delete", "--name=a-windows", "--yes")
	})
}

func TestDelete_NonWindowsMachineSetRejected(t *testing.T) {
	f := newFixture(t, configv1.AWSPlatformType)
	f.createWorkerSet("linux-workers", "aws.yaml")
	f.expectFailure("is not for Windows", "delete", "--name=linux-workers", "--yes")
	if _, err := f.get("linux-workers"); err != nil {
		t.Error(err)
	}
}

func TestApply_MissingPermissionNamed(t *testing.T) {
	f := newFixture(t, configv1.AWSPlatformType)
	a := newAccess(t, &f.stdout, &f.stderr)
	*a.Flags.Impersonate = "nobody"
	err := (&command{Access: a}).apply(t.Context())
	if err == nil || !strings.Contains(err.Error(), `User "nobody" cannot get resource "infrastructures"`) ||
		!strings.Contains(err.Error(), "docs/cli.md lists the rights") {
		t.Error(err)
	}
}

//
func TestGenerate_FindsNewestAWSImage(t *testing.T) {
	f := newFixture(t, configv1.AWSPlatformType)
	f.createWorkerSet("linux-workers", "aws.yaml")
	t.Run("the newest one is looked up, and told", func(t *testing.T) {
		f.expectSuccess("generate", "--version=2019", "--file="+fileName)
		if !strings.Contains(f.readOutputFile(), "id: ami-0123456789abcdef0") || !strings.Contains(f.stderr.String(),
			"Windows_Server-2019-in-us-east-1") || !strings.Contains(f.stdout.String(), "wrote "+fileName) {
			t.Errorf("%s\n%s", f.stderr.String(), f.readOutputFile())
		}
		if err := os.Remove(fileName); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("one that is named is not looked up", func(t *testing.T) {
		f.findAMI = nil
		f.expectSuccess("generate", "--image=ami-11112222333344445")
	})
	f.findAMI = findAMI
	program := func(script string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "aws"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir)
	}
	const byHand = `aws ec2 describe-images --region us-east-1 --filters "Name=name,Values=Windows_Server-2022*English*Core*Base*" ` +
		`"Name=is-public,Values=true" --query "reverse(sort_by(Images, &CreationDate))[*].{name: Name, id: ImageId}" --output table`
	t.Run("without Amazon's command line it says how to look one up", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		f.expectFailure(byHand, "generate")
	})
	t.Run("what Amazon's command line says about its failure is reported", func(t *testing.T) {
		program("echo no credentials >&2; exit 255")
		f.expectFailure("no credentials", "generate")
	})
	t.Run("there may be none", func(t *testing.T) {
		program("echo None")
		f.expectFailure(byHand, "generate")
	})
	t.Run("it may find one", func(t *testing.T) {
		program(`[ "$4" = us-east-1 ] && [ "$6" = amazon ] && printf 'ami-11112222333344445\tWindows_Server-2022-English-Core-Base\n'`)
		f.expectSuccess("generate")
		if !strings.Contains(f.stdout.String(), "id: ami-11112222333344445") {
			t.Error(f.stdout.String())
		}
	})
}
