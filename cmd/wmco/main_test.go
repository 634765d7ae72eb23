package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/internal/podexec"
)

// L-03: a cluster without Internet access configures its own pause image.
func TestPauseImage_ReadFromEnvironment(t *testing.T) {
	for name, test := range map[string]struct {
		set     string
		refused bool
	}{
		"unset leaves the usual one":       {"", false},
		"a registry with a port and a tag": {"registry.example.com:5000/windows/pause:3.10", false},
		"a digest": {"registry.example.com/pause@sha256:" + strings.Repeat("a", 64),
			false},
		"what would end a string in a file":           {"pause'\nevil = 'x", true},
		"no registry, which no mirror is for":         {"pause:3.10", true},
		"no tag, which would be another one tomorrow": {"registry.example.com/pause", true},
		"a scheme":                            {"https://registry.example.com/pause", true},
		"blanks are no image, and not unset":  {" ", true},
		"upper case, which no registry takes": {"registry.example.com/Pause:1", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(pauseImageVariable, test.set)
			image, err := pauseImage()
			if (err != nil) != test.refused {
				t.Fatalf("got %q, error %v", image, err)
			}
			if err != nil && !strings.Contains(err.Error(), pauseImageVariable) {
				t.Errorf("the error does not name the variable: %v", err)
			}
			if err == nil && image != test.set {
				t.Errorf("got %q", image)
			}
		})
	}
}

// Subscriptions of earlier releases request debug logs with this variable.
func TestDebugLogging_RequestedByARGS(t *testing.T) {
	for value, want := range map[string]struct {
		debug   bool
		ignored []string
	}{
		"":                               {},
		"--debugLogging":                 {debug: true},
		" -debugLogging=true\n":          {debug: true},
		"--debugLogging=false":           {},
		"--debugLogging=maybe":           {ignored: []string{"--debugLogging=maybe"}},
		"debugLogging":                   {ignored: []string{"debugLogging"}},
		"--zap-level=9 --debugLogging x": {debug: true, ignored: []string{"--zap-level=9", "x"}},
	} {
		if debug, ignored := parseDebugLogging(value); debug != want.debug || !slices.Equal(ignored, want.ignored) {
			t.Errorf("%q requests debug logs: %t, and %q are ignored", value, debug, ignored)
		}
	}
}

func TestDebugLogging_SetInConfiguration(t *testing.T) {
	t.Setenv("WATCH_NAMESPACE", "windows")
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c",
		"clusters":[{"name":"c","cluster":{"server":"https://api.example.com"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	for value, want := range map[string]bool{"--debugLogging": true, "": false} {
		t.Setenv(argumentsVariable, value)
		c := operator.Config{}
		if err := readEnvironment(&c, ""); err != nil || c.Debug != want {
			t.Errorf("with %q debug logs are %t, error %v", value, c.Debug, err)
		}
	}
}

// The image contains a link of this name, because oc adm must-gather runs /usr/bin/gather.
func TestGather_SelectedByProgramName(t *testing.T) {
	for name, test := range map[string]struct{ process, want []string }{
		"by its path":      {[]string{"/usr/bin/gather"}, []string{"gather"}},
		"with a namespace": {[]string{"gather", "-n", "windows"}, []string{"gather", "-n", "windows"}},
		"and wmco does so only if it is asked to": {[]string{"/usr/bin/wmco", "--payload-dir=/gather"},
			[]string{"--payload-dir=/gather"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := commandArguments(test.process); !slices.Equal(got, test.want) {
				t.Errorf("its arguments are %q", got)
			}
		})
	}
	command, _, err := newCommand().Find(commandArguments([]string{"/usr/bin/gather"}))
	if err != nil || command.Name() != "gather" {
		t.Fatalf("it runs %s, error %v", command.Name(), err)
	}
	if flag := command.Flags().Lookup("dest-dir"); flag.DefValue != "/must-gather" {
		t.Errorf("it writes to %s", flag.DefValue)
	}
}

func TestSSHAlgorithms_WeakAlgorithmsAllowedByNameOnly(t *testing.T) {
	t.Setenv("WATCH_NAMESPACE", "") // so that a valid list causes its own error
	for name, c := range map[string]struct {
		variable string
		flags    []string
		problem  string
	}{
		"none":                {"", nil, "WATCH_NAMESPACE"},
		"one by the variable": {"ssh-rsa", nil, "WATCH_NAMESPACE"},
		"two by the flag": {"", []string{"--ssh-legacy-algorithms=ssh-rsa,hmac-sha1"},
			"WATCH_NAMESPACE"},
		"an unknown one by the variable":        {"ssh-rsa,md5", nil, `"md5"`},
		"an unknown one by the flag":            {"", []string{"--ssh-legacy-algorithms", "arcfour"}, `"arcfour"`},
		"the flag counts, and not the variable": {"md5", []string{"--ssh-legacy-algorithms=hmac-sha1"}, "WATCH_NAMESPACE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SSH_LEGACY_ALGORITHMS", c.variable)
			command := newCommand()
			command.SetArgs(append([]string{}, c.flags...))
			err := command.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Fatalf("the error is %v", err)
			}
			if c.problem != "WATCH_NAMESPACE" && (!strings.Contains(err.Error(), "SSH_LEGACY_ALGORITHMS") ||
				!strings.Contains(err.Error(), "--ssh-legacy-algorithms")) {
				t.Errorf("the error does not name flag and variable: %v", err)
			}
		})
	}
}

// kubectl windows runs the commands with the arguments of the operator's container before the command's own
// arguments.
func TestCommands_AcceptArgumentsOfDeployment(t *testing.T) {
	content, err := os.ReadFile("../../deploy/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := yaml.Unmarshal(content, &deployment); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { debug.SetMemoryLimit(math.MaxInt64) })
	t.Setenv("WATCH_NAMESPACE", "") // so that the command ends before searching for a cluster
	command := newCommand()
	command.SetIn(strings.NewReader(""))
	command.SetArgs(append(deployment.Spec.Template.Spec.Containers[0].Args, "plan", "x", "--output=text", "--attached"))
	ran, err := command.ExecuteContextC(t.Context())
	if err == nil || !strings.Contains(err.Error(), "WATCH_NAMESPACE") || ran.Name() != "plan" {
		t.Errorf("%s ended with %v", ran.Name(), err)
	}
	if limit := debug.SetMemoryLimit(-1); limit != inspectionMemory {
		t.Errorf("its memory limit is %d", limit)
	}
}

func TestCommands_OnlyHostCommandsHaveOperatorFlags(t *testing.T) {
	for name, has := range map[string]bool{"plan": true, "logs": true, "collect": true, "gather": false, "version": false} {
		command, _, err := newCommand().Find([]string{name})
		if err != nil || command.Name() != name {
			t.Fatal(name, err)
		}
		if usage := command.UsageString(); strings.Contains(usage, "--payload-dir") != has {
			t.Errorf("the usage of %s is\n%s", name, usage)
		}
	}
}

// Users of the previous operator have scripts that parse the version from this line.
func TestVersion_PrintedInLegacyFormat(t *testing.T) {
	var out bytes.Buffer
	command := newCommand()
	command.SetArgs([]string{"version"})
	command.SetOut(&out)
	if err := command.Execute(); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^(\S+) version: "([^"]*)", go version: "(go\S+ \w+/\w+)"\n$`).FindStringSubmatch(out.String())
	if line == nil || line[1] != os.Args[0] || line[2] != version || line[3] != runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH {
		t.Errorf("it prints %q", &out)
	}
}

func TestExitStatus_UnknownCommandOrFlagDiffers(t *testing.T) {
	for line, want := range map[string]int{
		"plan --attached --new-flag": podexec.UnknownFlag,
		"plan -N --attached":         podexec.UnknownFlag,
		"new-command --attached":     podexec.UnknownFlag,
		"plan --attached --all=x":    1,
		"logs --attached":            1, // without a name
	} {
		t.Run(line, func(t *testing.T) {
			command := newCommand()
			command.SetArgs(strings.Fields(line))
			if err := command.ExecuteContext(t.Context()); err == nil || statusOf(err) != want {
				t.Errorf("status %d for error %v", statusOf(err), err)
			}
		})
	}
}
