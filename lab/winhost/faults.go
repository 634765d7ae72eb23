package winhost

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"k8s.io/utils/clock"
)

// Fault is the name of a fault of a host.
type Fault string

// The faults. Each description explains the meaning of the Parameters.
const (
	RefuseConnection       Fault = "refuse-connection"
	HangBeforeBanner       Fault = "hang-before-banner"
	HangAfterAuth          Fault = "hang-after-auth"
	SlowBanner             Fault = "slow-banner"
	SlowLogin              Fault = "slow-login"
	SlowSession            Fault = "slow-session"
	CutAfterBytes          Fault = "cut-after-bytes"
	SlowLink               Fault = "slow-link"
	ChangedHostKey         Fault = "changed-host-key"
	RejectKey              Fault = "reject-key"
	FillDisk               Fault = "disk-full"
	FailServiceStart       Fault = "service-fails-to-start"
	VerbKilledWithSession  Fault = "verb-killed-with-session"
	VerbSurvivesSession    Fault = "verb-survives-session"
	NoiseBeforeOutput      Fault = "noise-before-output"
	PowerShellDefaultShell Fault = "powershell-default-shell"
	BashDefaultShell       Fault = "bash-default-shell"
	SlowBoot               Fault = "slow-boot"
	DelayShutdown          Fault = "lingers-before-reboot"
	AgentBlocked           Fault = "agent-blocked"
	RenameRefused          Fault = "rename-refused"
)

// Parameters configure a fault. Unused parameters are ignored.
type Parameters struct {
	Bytes          int64         // offset of a cut; free space of a disk
	Latency        time.Duration // round trip of a slow link
	BytesPerSecond int64         // of a slow link
	Duration       time.Duration // of a slow boot, a shutdown or a scan; delay of a slow SSH server
	Service        string        // that does not start
	ExitCode       int           // of that service; default 1
	Command        string        // faults of a command affect only command lines that contain this
	Text           string        // noise; default: defaultNoise
}

// faultKind is the description of a fault, an example of its parameters, and the additional effect of an injection.
type faultKind struct {
	fault       Fault
	description string
	example     Parameters
	inject      func(h *Host, active *activeFault) (undo func(), err error)
}

var faultKinds = []faultKind{
	{RefuseConnection, "nothing listens on port 22", Parameters{}, (*Host).injectRefusal},
	{HangBeforeBanner, "the SSH server accepts connections and says nothing", Parameters{}, (*Host).injectCut},
	{HangAfterAuth, "after the login, nothing comes from the host any more; connections that there are hang too",
		Parameters{}, nil},
	{SlowBanner, "the SSH server says nothing for Duration after it has accepted a connection, as OpenSSH for Windows " +
		"when its process for the connection starts slowly", Parameters{Duration: 50 * time.Second}, nil},
	{SlowLogin, "a login takes Duration, as a user's first one, which makes the profile",
		Parameters{Duration: 50 * time.Second}, nil},
	{SlowSession, "each session is opened Duration later", Parameters{Duration: 25 * time.Second}, nil},
	{CutAfterBytes, "the connection is cut once, when Bytes more bytes have passed in both directions together",
		Parameters{Bytes: 1 << 20}, nil},
	{SlowLink, "the line has a round trip of Latency and takes BytesPerSecond",
		Parameters{Latency: 2 * time.Second, BytesPerSecond: 64 << 10}, (*Host).injectSlowLink},
	{ChangedHostKey, "the host shows another host key than before", Parameters{}, (*Host).injectHostKey},
	{RejectKey, "the operator's key is not authorized", Parameters{}, (*Host).injectCut},
	{FillDisk, "only Bytes bytes are free on C:", Parameters{Bytes: 64 << 10}, (*Host).injectDiskFull},
	{FailServiceStart, "the service Service ends with ExitCode whenever it is started",
		Parameters{Service: "containerd", ExitCode: 1}, (*Host).injectServiceFailure},
	{VerbKilledWithSession,
		"the connection is cut once, when a command that contains Command has put out Bytes bytes, and the " +
			"command is killed with it", Parameters{Command: "apply", Bytes: 1}, nil},
	{VerbSurvivesSession, "commands live on when their session ends; with Bytes, the connection is cut once as above",
		Parameters{Command: "apply", Bytes: 1}, nil},
	{NoiseBeforeOutput, "Text comes before the output of each command", Parameters{Text: defaultNoise}, nil},
	{PowerShellDefaultShell, "the default shell is PowerShell", Parameters{}, nil},
	{BashDefaultShell, "the default shell is bash", Parameters{}, nil},
	{SlowBoot, "the SSH server listens Duration later after each boot", Parameters{Duration: 5 * time.Minute}, nil},
	{DelayShutdown, "after it has accepted a reboot, the host answers and works for Duration before it goes down",
		Parameters{Duration: time.Minute}, (*Host).injectLinger},
	{RenameRefused, "files that come by SFTP cannot be renamed or deleted for Duration, because a virus scanner reads them",
		Parameters{Duration: time.Second}, nil},
	{AgentBlocked, "a security product refuses to run wicd.exe", Parameters{}, nil},
}

// defaultNoise is typical output of login scripts and AutoRun commands, with the byte order mark of a UTF-16 program.
const defaultNoise = "\xff\xfeActive code page: 437\r\n*** Property of Example Corp. ***\r\n{\"not\": \"ours\"}\r\n\r\n"

// AllFaults returns all faults.
func AllFaults() []Fault {
	faults := make([]Fault, len(faultKinds))
	for i, kind := range faultKinds {
		faults[i] = kind.fault
	}
	return faults
}

func (f Fault) findKind() faultKind {
	i := slices.IndexFunc(faultKinds, func(kind faultKind) bool { return kind.fault == f })
	if i < 0 {
		panic(fmt.Sprintf("there is no fault %q; see AllFaults", f))
	}
	return faultKinds[i]
}

// ParseFault returns the fault of a name.
func ParseFault(name string) (Fault, error) {
	if !slices.Contains(AllFaults(), Fault(name)) {
		return "", fmt.Errorf("there is no fault %q; there are %v", name, AllFaults())
	}
	return Fault(name), nil
}

// Description returns the description of the fault.
func (f Fault) Description() string { return f.findKind().description }

// Example returns parameters that demonstrate the fault.
func (f Fault) Example() Parameters { return f.findKind().example }

// Inject injects a fault until mend is called. If a fault is injected several times, the last injection counts.
// Inject panics for an unknown fault, and when the host's drive or randomness fails.
func (h *Host) Inject(fault Fault, parameters Parameters) (restore func()) {
	kind := fault.findKind()
	active := &activeFault{fault: fault, parameters: parameters, left: parameters.Bytes, cleared: make(chan struct{})}
	inject := kind.inject
	if inject == nil {
		inject = (*Host).injectQuietly
	}
	undo, err := inject(h, active)
	if err != nil {
		panic(fmt.Sprintf("inject %s into %s: %v", fault, h.machine.Name(), err))
	}
	return sync.OnceFunc(func() {
		h.faults.removeFault(active)
		undo()
	})
}

// activeFault is an injected fault.
type activeFault struct {
	fault      Fault
	parameters Parameters
	hostKey    ssh.Signer
	cleared    chan struct{}

	left  int64 // bytes until the cut
	spent bool  // a cut that happens once has happened
}

// faults are the active faults of a host, the latest last.
type faults struct {
	mu     sync.Mutex
	active []*activeFault
}

func (f *faults) addFault(fault *activeFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active = append(f.active, fault)
}

func (f *faults) removeFault(fault *activeFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active = slices.DeleteFunc(f.active, func(each *activeFault) bool { return each == fault })
	close(fault.cleared)
}

// findActive returns the fault if it is active, else nil.
func (f *faults) findActive(fault Fault) *activeFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.latestActive(fault)
}

func (f *faults) latestActive(fault Fault) *activeFault {
	for _, each := range slices.Backward(f.active) {
		if each.fault == fault {
			return each
		}
	}
	return nil
}

// holdWhileActive waits while the fault is active. It returns an error if ctx is done before.
func (f *faults) holdWhileActive(ctx context.Context, fault Fault) error {
	for {
		active := f.findActive(fault)
		if active == nil {
			return ctx.Err()
		}
		select {
		case <-active.cleared:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// delayWhileActive waits for the Duration of the fault while it is active. It returns an error if ctx is done before.
func (f *faults) delayWhileActive(ctx context.Context, c clock.Clock, fault Fault) error {
	active := f.findActive(fault)
	if active == nil {
		return ctx.Err()
	}
	timer := c.NewTimer(active.parameters.Duration)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-active.cleared:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// allowBytes returns the number of bytes, up to n, that may pass before the connection is cut.
func (f *faults) allowBytes(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	cut := f.latestActive(CutAfterBytes)
	if cut == nil || cut.spent {
		return n
	}
	if int64(n) <= cut.left {
		cut.left -= int64(n)
		return n
	}
	cut.spent = true
	return int(cut.left)
}
