package testenv

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/userdata"
	"github.com/windows-machine-config/wmco/lab/fakemachineapi"
)

// cloudLab is a cloud without a cluster.
type cloudLab struct {
	*testing.T
	env    *Environment
	clock  *clocktesting.FakeClock
	signer ssh.Signer
}

func newCloudLab(t *testing.T, options VMOptions) *cloudLab {
	t.Helper()
	l := &cloudLab{T: t, clock: clocktesting.NewFakeClock(time.Now())}
	r := &Environment{contents: fake.NewContentStore(), dir: t.TempDir()}
	r.options = Options{Clock: l.clock, VM: options}.withDefaults()
	r.network, r.cloud = r.options.Network, newCloud(r)
	r.running, r.stop = context.WithCancelCause(context.WithoutCancel(t.Context()))
	r.programs = r.programTable()
	if err := r.generateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.env, l.signer = r, r.key.Signer()
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// newWindowsVM returns a virtual machine with the operator's user data.
func (l *cloudLab) newWindowsVM(platform, name string) fakemachineapi.VirtualMachine {
	l.Helper()
	data, err := userdata.Generate(platform, l.signer.PublicKey())
	if err != nil {
		l.Fatal(err)
	}
	return fakemachineapi.VirtualMachine{
		ID: "i-" + name, MachineName: name, Platform: platform, OperatingSystem: fakemachineapi.Windows, Image: "windows-2022",
		ProviderID: "cloud://" + name, UserData: data,
	}
}

// run creates a virtual machine and waits until it runs.
func (l *cloudLab) run(vm fakemachineapi.VirtualMachine) *Host {
	l.Helper()
	if err := l.env.cloud.Create(l.Context(), vm); err != nil {
		l.Fatal(err)
	}
	l.awaitCondition("the virtual machine runs", func() bool { return l.describeVM(vm.ID).State == fakemachineapi.Running })
	return l.env.MachineHost(vm.MachineName)
}

func (l *cloudLab) describeVM(id string) fakemachineapi.VirtualMachineStatus {
	l.Helper()
	status, _, err := l.env.cloud.Describe(l.Context(), id)
	if err != nil {
		l.Fatal(err)
	}
	return status
}

// awaitCondition waits for a condition that other goroutines satisfy without a delay.
func (l *cloudLab) awaitCondition(what string, condition func() bool) {
	l.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(3 * time.Minute); !condition(); <-ticker.C {
		if time.Now().After(deadline) {
			l.Fatal("not in time: " + what)
		}
	}
}

// advanceClock advances the clock as soon as a goroutine waits for it.
func (l *cloudLab) advanceClock(d time.Duration) {
	l.Helper()
	l.awaitCondition("somebody waits", l.clock.HasWaiters)
	l.clock.Step(d)
}

// tryLogin logs in over the network.
func (l *cloudLab) tryLogin(address, user string, signer ssh.Signer) error {
	conn, err := l.env.network.DialContext(l.Context(), "tcp", net.JoinHostPort(address, "22"))
	if err != nil {
		return err
	}
	c, channels, requests, err := ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	return ssh.NewClient(c, channels, requests).Close()
}

func (l *cloudLab) canLogin(h *Host, user string, signer ssh.Signer) bool {
	return l.tryLogin(h.currentAddress(), user, signer) == nil
}

//
func TestUserData_EnablesOperatorLogin(t *testing.T) {
	for platform, user := range map[string]string{platformAWS: "Administrator", platformAzure: "capi",
		platformGCP: "Administrator"} {
		t.Run(platform, func(t *testing.T) {
			l := newCloudLab(t, VMOptions{UserDataDelay: time.Minute})
			h := l.run(l.newWindowsVM(platform, "win-a"))
			if err := l.tryLogin(h.currentAddress(), user, l.signer); err == nil || !strings.Contains(err.Error(), "refused") &&
				!strings.Contains(err.Error(), "no route") {
				t.Fatalf("before the user data has run: %v", err)
			}
			l.advanceClock(time.Minute)
			l.awaitCondition("the key is accepted", func() bool { return l.canLogin(h, user, l.signer) })
			if !h.Machine().IsPortAllowed(22) || !h.Machine().IsPortAllowed(10250) {
				t.Error("a port of the header is not open")
			}
			if l.canLogin(h, user, newSigner(t)) {
				t.Error("another key is accepted as well")
			}
		})
	}
}

func TestUserData_InvalidScriptNotRun(t *testing.T) {
	for name, data := range map[string]string{
		"a script without tags on AWS": "# nothing\n", "a script whose tag does not end": "<powershell>\n",
		"user data for Linux": `{"ignition":{}}`, "none": "",
	} {
		t.Run(name, func(t *testing.T) {
			l := newCloudLab(t, VMOptions{})
			vm := l.newWindowsVM(platformAWS, "win-a")
			vm.UserData = []byte(data)
			h := l.run(vm)
			if l.tryLogin(h.currentAddress(), "Administrator", l.signer) == nil {
				t.Error("the host lets the operator in all the same")
			}
		})
	}
}

//
func TestTemplate_ContainsKey(t *testing.T) {
	for _, platform := range []string{platformVSphere, platformNutanix} {
		t.Run(platform, func(t *testing.T) {
			l := newCloudLab(t, VMOptions{})
			vm := l.newWindowsVM(platform, "winworker-a")
			vm.UserData = []byte(`{"ignition":{"version":"3.2.0"}}`)
			h := l.run(vm)
			l.awaitCondition("the key of the template is accepted", func() bool { return l.canLogin(h, "Administrator", l.signer) })
			if name := h.Machine().Name(); !strings.HasPrefix(name, "WIN-") {
				t.Errorf("the host calls itself %s before anybody has renamed it", name)
			}
		})
	}
}

// A MachineSet that is copied to another zone without a matching subnet creates no virtual machine.
func TestCloud_SubnetOfAnotherZoneNotFound(t *testing.T) {
	l := newCloudLab(t, VMOptions{})
	vm := l.newWindowsVM(platformAWS, "win-a")
	vm.Zone, vm.Subnet = "us-east-1b", "lab-subnet-private-us-east-1a"
	if err := l.env.cloud.Create(t.Context(), vm); err == nil || !strings.Contains(err.Error(),
		"no subnet IDs were found") {
		t.Errorf("error %v", err)
	}
	vm.Subnet = "lab-subnet-private-us-east-1b"
	if h := l.run(vm); h.Zone() != "us-east-1b" {
		t.Errorf("it runs in zone %q", h.Zone())
	}
}

func TestVirtualMachine_ExistsUntilDeleted(t *testing.T) {
	l := newCloudLab(t, VMOptions{RebootDuration: time.Second})
	vm := l.newWindowsVM(platformAWS, "win-a")
	h := l.run(vm)
	l.awaitCondition("the key is accepted", func() bool { return l.canLogin(h, "Administrator", l.signer) })
	t.Run("making it again changes nothing", func(t *testing.T) {
		if err := l.env.cloud.Create(t.Context(), vm); err != nil || l.env.MachineHost("win-a") != h {
			t.Errorf("it is another host, or %v", err)
		}
	})
	t.Run("the platform tells its addresses", func(t *testing.T) {
		got := fmt.Sprint(l.describeVM(vm.ID).Addresses)
		if want := "[{InternalIP 10.9.128.1} {InternalDNS ip-10-9-128-1.ec2.internal} {Hostname ip-10-9-128-1.ec2.internal}]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("it lets the operator in after a reboot, with a key that was added by hand as well", func(t *testing.T) {
		other := newSigner(t)
		if err := h.AuthorizeKey("Administrator", other.PublicKey()); err != nil {
			t.Fatal(err)
		}
		if err := h.Machine().Host().Power.Reboot(t.Context(), "a test wants it"); err != nil {
			t.Fatal(err)
		}
		l.awaitCondition("it is down", func() bool { return !l.canLogin(h, "Administrator", l.signer) })
		l.advanceClock(time.Second)
		l.awaitCondition("both keys are accepted", func() bool {
			return l.canLogin(h, "Administrator", l.signer) && l.canLogin(h, "Administrator", other)
		})
	})
	t.Run("it is gone for good when it was deleted", func(t *testing.T) {
		if err := l.env.cloud.Delete(t.Context(), vm.ID); err != nil {
			t.Fatal(err)
		}
		l.awaitCondition("it is gone", func() bool {
			_, found, err := l.env.cloud.Describe(t.Context(), vm.ID)
			return err == nil && !found
		})
		for _, address := range []string{"10.9.128.1", "ip-10-9-128-1.ec2.internal"} {
			if err := l.tryLogin(address, "Administrator", l.signer); err == nil || strings.Contains(err.Error(), "refused") {
				t.Errorf("%s is still somebody's: %v", address, err)
			}
		}
		if err := l.env.cloud.Delete(t.Context(), vm.ID); err != nil {
			t.Errorf("deleting what is gone: %v", err)
		}
		if second := l.run(l.newWindowsVM(platformAWS, "win-b")); second.currentAddress() == "10.9.128.1" {
			t.Error("the next virtual machine has its address already")
		}
	})
}

func TestVMFaults(t *testing.T) {
	t.Run("user data hangs until it is mended", func(t *testing.T) {
		l := newCloudLab(t, VMOptions{})
		restore := l.env.InjectVM(VMFault{Machine: "slow-*", UserDataHangs: true})
		slow, other := l.run(l.newWindowsVM(platformAWS, "slow-a")), l.run(l.newWindowsVM(platformAWS, "fast-a"))
		l.awaitCondition("the other accepts the key", func() bool { return l.canLogin(other, "Administrator", l.signer) })
		if l.canLogin(slow, "Administrator", l.signer) {
			t.Error("it accepts the key")
		}
		restore()
		l.awaitCondition("it accepts the key", func() bool { return l.canLogin(slow, "Administrator", l.signer) })
	})
	t.Run("the key is refused for a while", func(t *testing.T) {
		l := newCloudLab(t, VMOptions{})
		l.env.InjectVM(VMFault{Machine: "win-*", KeyRefusalDuration: 5 * time.Minute})
		h := l.run(l.newWindowsVM(platformAWS, "win-a"))
		l.awaitCondition("the server answers", func() bool {
			err := l.tryLogin(h.currentAddress(), "Administrator", l.signer)
			return err != nil && strings.Contains(err.Error(), "unable to authenticate")
		})
		l.awaitCondition("the key is accepted", func() bool {
			l.clock.Step(5 * time.Minute) // at each check: the server responds a moment before the wait begins
			return l.canLogin(h, "Administrator", l.signer)
		})
	})
	t.Run("the platform refuses", func(t *testing.T) {
		l := newCloudLab(t, VMOptions{})
		quota := fakemachineapi.Permanent(errors.New("quota"))
		restore := l.env.InjectVM(VMFault{Machine: "*", CreateError: quota})
		vm := l.newWindowsVM(platformAWS, "win-a")
		if err := l.env.cloud.Create(t.Context(), vm); !errors.Is(err, quota) {
			t.Errorf("got %v", err)
		}
		restore()
		l.run(vm)
	})
	t.Run("a computer name that is too long on Azure", func(t *testing.T) {
		l := newCloudLab(t, VMOptions{})
		if err := l.env.cloud.Create(t.Context(), l.newWindowsVM(platformAzure, "a-very-long-name")); err == nil ||
			!strings.Contains(err.Error(), "15 characters") {
			t.Errorf("got %v", err)
		}
	})
}

func TestComputerNameAndImage(t *testing.T) {
	for _, c := range []struct{ platform, want string }{
		{platformAWS, "EC2AMAZ-"}, {platformAzure, "win-a"}, {platformGCP, "win-a"}, {platformVSphere, "WIN-"},
		{platformNutanix, "WIN-"},
	} {
		name := computerName(fakemachineapi.VirtualMachine{ID: "1", MachineName: "win-a", Platform: c.platform})
		if !strings.HasPrefix(name, c.want) || len(name) > 15 {
			t.Errorf("on %s the computer name is %s", c.platform, name)
		}
	}
	for image, want := range map[string]string{"ami-2019": "10.0.17763.4737", "ami-0123": "10.0.20348.681",
		"2025-datacenter": "10.0.26100.6899", "ami-20348.169": "10.0.20348.169", "2019-datacenter-17763.1457": "10.0.17763.1457"} {
		system := imageSystem(image)
		if got := fmt.Sprintf("%s.%d", system.Version, system.Revision); got != want {
			t.Errorf("image %s has Windows %s, want %s", image, got, want)
		}
	}
}

func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}
