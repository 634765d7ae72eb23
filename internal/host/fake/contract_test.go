package fake

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/hosttest"
)

// resultsFile contains the results of the machine in memory for docs/verified/results.md.
const resultsFile = "../../../docs/verified/fake.json"

var update = flag.Bool("update", false, "write the results of the contract suite to docs/verified/fake.json")

// contractPrograms returns the programs for the contract suite, and one that provides its host.
func contractPrograms(hosts chan<- *Process) programs {
	return programs{
		"idle":    runIdle,
		"failing": func(context.Context, *Process) int { return 7 },
		"report":  writeReport,
		"parent": func(ctx context.Context, p *Process) int {
			if _, err := p.Spawn(`C:\idle.exe`); err != nil {
				return 1
			}
			<-ctx.Done()
			return 0
		},
		"test": func(ctx context.Context, p *Process) int { hosts <- p; <-ctx.Done(); return 0 },
	}
}

// writeReport writes the arguments and the environment of the process to the file in its last argument.
func writeReport(ctx context.Context, p *Process) int {
	account := hosttest.Account{Arguments: p.Args}
	for _, name := range slices.Sorted(maps.Keys(p.Environ)) {
		account.Environment = append(account.Environment, name+"="+p.Environ[name])
	}
	data, err := json.Marshal(account)
	if err == nil {
		err = p.Host.Files.Write(ctx, p.Args[len(p.Args)-1], strings.NewReader(string(data)), host.WriteOptions{})
	}
	if err != nil {
		return 1
	}
	<-ctx.Done()
	return 0
}

// contractMachine boots a machine for the contract suite.
func contractMachine(t *testing.T, change func(*Options)) (*rig, <-chan *Process) {
	hosts := make(chan *Process, 1)
	return bootMachine(t, contractPrograms(hosts), func(o *Options) { o.Clock = clock.RealClock{} }, change), hosts
}

// underTest returns the machine for the contract suite, seen by the process. The host may be that of another process.
func underTest(r *rig, h host.Host, p *Process) hosttest.Machine {
	const port, endpoint = 47000, "npipe://./pipe/wmco-contract"
	return hosttest.Machine{
		Host: h,
		Programs: hosttest.Programs{
			Idle: []string{`C:\idle.exe`}, Failing: []string{`C:\failing.exe`},
			Reporting: []string{`C:\report.exe`}, Parent: []string{`C:\parent.exe`},
		},
		ServeHTTP: func(handler http.Handler) (string, error) {
			return fmt.Sprintf("http://127.0.0.1:%d", port), p.ServeLocal(port, handler)
		},
		ServeRuntime: func(status host.RuntimeStatus) (string, error) {
			return endpoint, p.ServeRuntime(endpoint, func() host.RuntimeStatus { return status })
		},
		CreateNetwork: func(_ context.Context, network host.HNSNetwork) error { return r.CreateNetwork(network) },
		OpenLog: func(path string) (io.WriteCloser, error) {
			w := openLog{p, path}
			_, err := w.Write(nil)
			return w, err
		},
		SetUserOwner: func(_ context.Context, path string) error { return r.Drive().SetOwner("joe", path) },
		OpenToAll:    func(_ context.Context, path string) error { return r.Drive().OpenToAll(path) },
		AddOutboundRule: func(_ context.Context, name string) (func() (bool, error), error) {
			r.AddOutboundRule(name)
			return func() (bool, error) { return r.HasOutboundRule(name), nil }, nil
		},
		ClearLog:      func(string) error { r.ClearEvents(); return nil },
		Platform:      "AWS",
		StopAntivirus: func(ctx context.Context) error { return h.Services.Stop(ctx, host.DefenderService) },
		FailList:      r.FailList,
		Vanish: func(name string, _ uint32, afterList bool) (vanished func() bool) {
			return r.VanishHNS(name, afterList)
		},
	}
}

// openLog is a log opened by a process.
type openLog struct {
	p    *Process
	path string
}

func (l openLog) Write(text []byte) (int, error) {
	return len(text), l.p.AppendLog(l.path, string(text))
}

func (l openLog) Close() error {
	return l.p.runLocked(func(*Machine) error {
		for _, h := range l.p.holds {
			h.releaseNode()
		}
		l.p.holds = nil
		return nil
	})
}

func TestHostContract(t *testing.T) {
	results := hosttest.Run(t, hosttest.Subject{
		Environment: hosttest.Fake,
		Open: func(t *testing.T) hosttest.Machine {
			r, hosts := contractMachine(t, func(o *Options) {
				o.Features = map[string]host.FeatureState{"Containers": host.FeatureEnabled}
				o.Metadata = map[string]string{"AWS": "ip-10-0-0-4.ec2.internal"}
			})
			// The process must stay alive until the suite has cleaned up.
			go func() { _, _ = r.Exec(context.Background(), ExecRequest{Path: `C:\test.exe`}) }()
			p := <-hosts
			return underTest(r, p.Host, p)
		},
	})
	t.Run("power", func(t *testing.T) { results = results.Merge(rebootContract(t)) })
	if t.Failed() {
		return
	}
	if *update {
		if err := results.Write(resultsFile); err != nil {
			t.Fatal(err)
		}
	}
	known, err := hosttest.ReadReport(os.DirFS(filepath.Dir(resultsFile)), filepath.Base(resultsFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range known.Difference(results) {
		t.Errorf("docs/verified/fake.json is out of date, run this test with -update and then `make generate`: %s", line)
	}
}

// rebootContract returns the results of the part of the contract that restarts the machine.
func rebootContract(t *testing.T) hosttest.Report {
	r, _ := contractMachine(t, func(*Options) {})
	machine := underTest(r, r.Host, nil)
	first := r.BootID()
	if err := hosttest.ArmReboot(r.ctx, machine); err != nil {
		t.Fatal(err)
	}
	r.awaitCondition(func() bool { return r.IsRunning() && r.BootID() != first })
	return hosttest.CheckReboot(t, hosttest.Subject{
		Environment: hosttest.Fake, Open: func(*testing.T) hosttest.Machine { return machine },
	})
}
