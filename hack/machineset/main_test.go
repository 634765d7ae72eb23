package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/machineset"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
)

var lab = clustertest.New(cluster.Options{Profile: cluster.OpenShift})

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }

// fixture is a cluster on a platform with one MachineSet of Linux workers, and a folder to work in.
type fixture struct {
	t       *testing.T
	client  client.Client
	command command
	stdout  bytes.Buffer
	stderr  bytes.Buffer
}

func on(t *testing.T, platform configv1.PlatformType) *fixture {
	t.Helper()
	c, err := newClient(lab.Cluster(t).Config)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, client: c}
	f.command = command{
		stdout: &f.stdout, stderr: &f.stderr,
		connect: func() (client.Client, error) { return c, nil },
		findAMI: func(_ context.Context, region, version string) (string, string, error) {
			return "ami-0123456789abcdef0", "Windows_Server-" + version + "-in-" + region, nil
		},
	}
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

// workers makes a MachineSet with the provider spec in testdata, in which old is replaced with something else.
func (f *fixture) workers(name, file string, replace ...string) {
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

// testdata as an absolute path: the tests work in folders of their own.
var testdata = func() string {
	path, err := filepath.Abs("testdata")
	if err != nil {
		panic(err)
	}
	return path
}()

// run returns the exit code.
func (f *fixture) run(args ...string) int {
	f.stdout.Reset()
	f.stderr.Reset()
	return f.command.run(f.t.Context(), args)
}

// succeeds runs the command and ends the test if it fails.
func (f *fixture) succeeds(args ...string) {
	f.t.Helper()
	if code := f.run(args...); code != exitOK {
		f.t.Fatalf("%v ends with %d: %s", args, code, f.stderr.String())
	}
}

// fails runs the command, which must fail and say a text.
func (f *fixture) fails(code int, text string, args ...string) {
	f.t.Helper()
	if got := f.run(args...); got != code || !strings.Contains(f.stderr.String(), text) {
		f.t.Errorf("%v ends with %d: %s", args, got, f.stderr.String())
	}
	if f.file() != "" {
		f.t.Errorf("%v has written a file", args)
	}
}

// file is what was written, "" if nothing was.
func (f *fixture) file() string {
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

//
func TestEachPlatform(t *testing.T) {
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
			f := on(t, test.platform)
			f.workers("linux-workers", test.file)
			f.succeeds(append(test.args, "--replicas=0")...)
			written := f.file()
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
			if err := os.Remove(fileName); err != nil {
				t.Fatal(err)
			}

			f.succeeds(append(test.args, "apply", "--replicas=0")...)
			made, err := f.get(set.Name)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(made.Spec.Template.Spec.ProviderSpec.Value.Raw),
				string(set.Spec.Template.Spec.ProviderSpec.Value.Raw); got != want {
				t.Errorf("created: %s\nwritten: %s", got, want)
			}
			f.fails(exitFailed, "exists already", append(test.args, "apply")...)

			f.succeeds("delete")
			if _, err := f.get(set.Name); !apierrors.IsNotFound(err) {
				t.Errorf("after delete: %v", err)
			}
			f.fails(exitFailed, "not found", "delete")
		})
	}
}

//
func TestOtherPlatforms(t *testing.T) {
	for _, platform := range []configv1.PlatformType{configv1.NonePlatformType, configv1.NutanixPlatformType} {
		f := on(t, platform)
		for _, action := range [][]string{nil, {"apply"}, {"delete"}} {
			f.fails(exitFailed, `cannot make a MachineSet for platform "`+string(platform)+`"`, action...)
		}
	}
}

//
func TestUsage(t *testing.T) {
	f := on(t, configv1.AzurePlatformType)
	f.workers("linux-workers", "azure.yaml")
	for _, args := range [][]string{
		{"create"}, {"Apply"}, {"apply", "delete"}, {"--unknown"}, {"--version=2016"}, {"--version"}, {"--replicas=-1"},
		{"--replicas=many"},
		{"--image=a", "--template=b"}, {""},
	} {
		f.fails(exitUsage, "Usage: hack/machineset.sh [apply | delete] [flags]", args...)
	}
	f.succeeds("--help")
	if !strings.Contains(f.stdout.String(), "Usage:") || f.stderr.Len() > 0 {
		t.Errorf("help goes to the wrong place: %s", f.stderr.String())
	}
}

func TestWhichWorkersAreTaken(t *testing.T) {
	f := on(t, configv1.AWSPlatformType)
	t.Run("without any it says so", func(t *testing.T) {
		f.fails(exitFailed, "no worker MachineSet")
	})
	f.workers("workers-b", "aws.yaml", "us-east-1a", "us-east-1b")
	f.workers("workers-c", "aws.yaml", "us-east-1a", "us-east-1c")
	zone := func(args ...string) string {
		f.succeeds(args...)
		_, after, _ := strings.Cut(f.file(), "availabilityZone: ")
		zone, _, _ := strings.Cut(after, "\n")
		if err := os.Remove(fileName); err != nil {
			t.Fatal(err)
		}
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
	f.fails(exitFailed, "use a worker MachineSet of that zone", "--zone=us-east-1f")
	f.fails(exitFailed, "These are: workers-b, workers-c", "--from=workers-a")
	t.Run("a Windows MachineSet is not among them", func(t *testing.T) {
		f.succeeds("apply", "--name=a-windows", "--replicas=0")
		f.fails(exitFailed, "is not a MachineSet for Linux workers", "--from=a-windows")
		f.succeeds("delete", "--name=a-windows")
	})
}

func TestOnlyWindowsMachineSetsAreDeleted(t *testing.T) {
	f := on(t, configv1.AWSPlatformType)
	f.workers("linux-workers", "aws.yaml")
	f.fails(exitFailed, "is not for Windows", "delete", "--name=linux-workers")
	if _, err := f.get("linux-workers"); err != nil {
		t.Error(err)
	}
}

//
func TestAmazonsImage(t *testing.T) {
	f := on(t, configv1.AWSPlatformType)
	f.workers("linux-workers", "aws.yaml")
	t.Run("the newest one is looked up, and told", func(t *testing.T) {
		f.succeeds("--version=2019")
		if !strings.Contains(f.file(), "id: ami-0123456789abcdef0") || !strings.Contains(f.stderr.String(),
			"Windows_Server-2019-in-us-east-1") {
			t.Errorf("%s\n%s", f.stderr.String(), f.file())
		}
		if err := os.Remove(fileName); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("one that is named is not looked up", func(t *testing.T) {
		f.command.findAMI = nil
		f.succeeds("--image=ami-11112222333344445")
		if err := os.Remove(fileName); err != nil {
			t.Fatal(err)
		}
	})
	f.command.findAMI = findAMI
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
		f.fails(exitFailed, byHand)
	})
	t.Run("what Amazon's command line says about its failure is reported", func(t *testing.T) {
		program("echo no credentials >&2; exit 255")
		f.fails(exitFailed, "no credentials")
	})
	t.Run("there may be none", func(t *testing.T) {
		program("echo None")
		f.fails(exitFailed, byHand)
	})
	t.Run("it may find one", func(t *testing.T) {
		program(`[ "$4" = us-east-1 ] && [ "$6" = amazon ] && printf 'ami-11112222333344445\tWindows_Server-2022-English-Core-Base\n'`)
		f.succeeds()
		if !strings.Contains(f.file(), "id: ami-11112222333344445") {
			t.Error(f.file())
		}
	})
}
