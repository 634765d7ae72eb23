package winetestenv

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/lab/fakemachineapi"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// brokenCloud has one address, and no base for hosts. Working hosts are tested in test/wine.
func brokenCloud(t *testing.T) *Cloud {
	t.Helper()
	c := new(Kit).NewCloud(t.Context(), new(testenv.Environment),
		CloudOptions{Addresses: []netip.Addr{netip.MustParseAddr("10.89.0.1")}})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func windowsVM(id string) fakemachineapi.VirtualMachine {
	return fakemachineapi.VirtualMachine{ID: id, MachineName: "win-" + id, Platform: "AWS",
		OperatingSystem: fakemachineapi.Windows, Image: "ami-2022"}
}

func awaitCondition(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(2 * time.Minute); !condition(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatal("not in time: " + what)
		}
	}
}

func TestCloud_InvalidMachineRejected(t *testing.T) {
	for what, change := range map[string]func(*fakemachineapi.VirtualMachine){
		"a machine with Linux": func(vm *fakemachineapi.VirtualMachine) {
			vm.OperatingSystem = fakemachineapi.Linux
		},
		"an image that Wine hosts cannot be like": func(vm *fakemachineapi.VirtualMachine) { vm.Image = "windows-server-2025" },
		"a name that the platform refuses": func(vm *fakemachineapi.VirtualMachine) {
			vm.Platform, vm.MachineName = "Azure", "windows-machine-a"
		},
	} {
		t.Run(what, func(t *testing.T) {
			c, vm := brokenCloud(t), windowsVM("a")
			change(&vm)
			if err := c.Create(t.Context(), vm); err == nil {
				t.Error("it is accepted")
			}
			if _, found, err := c.Describe(t.Context(), vm.ID); found || err != nil {
				t.Errorf("there is something of it: %t, %v", found, err)
			}
		})
	}
}

func TestCloud_FailedHostCreationReported(t *testing.T) {
	c, ctx := brokenCloud(t), t.Context()
	if err := c.Create(ctx, windowsVM("a")); err != nil {
		t.Fatal(err)
	}
	awaitCondition(t, "it learns why", func() bool {
		status, found, err := c.Describe(ctx, "a")
		return found && status.State == fakemachineapi.Pending && err != nil && strings.Contains(err.Error(), "no base to clone")
	})
	if err := c.Create(ctx, windowsVM("a")); err != nil {
		t.Errorf("it cannot be asked for again: %v", err)
	}
	if err := c.Create(ctx, windowsVM("b")); err == nil || !strings.Contains(err.Error(), "addresses") {
		t.Errorf("two hosts have one address: %v", err)
	}
	for range 2 {
		if err := c.Delete(ctx, "a"); err != nil {
			t.Fatal(err)
		}
	}
	awaitCondition(t, "it is gone", func() bool {
		_, found, err := c.Describe(ctx, "a")
		return !found && err == nil
	})
	if err := c.Create(ctx, windowsVM("b")); err != nil {
		t.Errorf("the address is not given again: %v", err)
	}
	if c.Host("win-b") != nil {
		t.Error("there is a host that cannot be made")
	}
}

func TestUserData_ForeignScriptRejected(t *testing.T) {
	if err := runUserData(t.Context(), nil, []byte("Write-Host hello")); err == nil || !strings.Contains(err.Error(),
		"not user data of the operator") {
		t.Errorf("got %v", err)
	}
}
