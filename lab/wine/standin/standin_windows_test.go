package standin

// These tests run in a Wine prefix with the libraries installed and standin.reg imported.

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/Microsoft/hcsshim/hcn"
	"github.com/go-ole/go-ole"
	"github.com/go-ole/go-ole/oleutil"
	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// callDISM calls an entry point of dismapi.dll.
func callDISM(t *testing.T, name string, args ...uintptr) uint32 {
	t.Helper()
	proc := windows.NewLazySystemDLL("dismapi.dll").NewProc(name)
	if err := proc.Find(); err != nil {
		t.Fatal(err)
	}
	code, _, _ := proc.Call(args...)
	return uint32(code)
}

func utf16Pointer(t *testing.T, text string) uintptr {
	t.Helper()
	p, err := windows.UTF16PtrFromString(text)
	if err != nil {
		t.Fatal(err)
	}
	return uintptr(unsafe.Pointer(p))
}

// openDISM opens a session of the running system until the test ends.
func openDISM(t *testing.T) uintptr {
	t.Helper()
	if code := callDISM(t, "DismInitialize", 2, 0, 0); code != 0 {
		t.Fatalf("DismInitialize: %#x", code)
	}
	var session uint32
	image := utf16Pointer(t, "DISM_{53BFAE52-B167-4E2F-A258-0A37B57FF845}")
	if code := callDISM(t, "DismOpenSession", image, 0, 0, uintptr(unsafe.Pointer(&session))); code != 0 {
		t.Fatalf("DismOpenSession: %#x", code)
	}
	t.Cleanup(func() {
		if code := callDISM(t, "DismCloseSession", uintptr(session)); code != 0 {
			t.Errorf("DismCloseSession: %#x", code)
		}
		if code := callDISM(t, "DismShutdown"); code != 0 {
			t.Errorf("DismShutdown: %#x", code)
		}
	})
	return uintptr(session)
}

// featureState reads a feature's DismPackageFeatureState.
func featureState(t *testing.T, session uintptr, name string) (state, code uint32) {
	t.Helper()
	var info *byte
	code = callDISM(t, "DismGetFeatureInfo", session, utf16Pointer(t, name), 0, 0, uintptr(unsafe.Pointer(&info)))
	if code == 0 {
		state = *(*uint32)(unsafe.Add(unsafe.Pointer(info), 8))
		callDISM(t, "DismDelete", uintptr(unsafe.Pointer(info)))
	}
	return state, code
}

func enableFeature(t *testing.T, session uintptr, name string) uint32 {
	return callDISM(t, "DismEnableFeature", session, utf16Pointer(t, name), 0, 0, 0, 0, 0, 0, 0, 0, 0)
}

func disableFeature(t *testing.T, session uintptr, name string) uint32 {
	return callDISM(t, "DismDisableFeature", session, utf16Pointer(t, name), 0, 0, 0, 0, 0)
}

func TestFeatures(t *testing.T) {
	session := openDISM(t)
	const disabled, installed, installPending = 2, 4, 5
	wantState := func(t *testing.T, name string, want uint32) {
		t.Helper()
		if state, code := featureState(t, session, name); state != want || code != 0 {
			t.Errorf("%s: state %d, code %#x, want %d", name, state, code, want)
		}
	}
	wantCode := func(t *testing.T, got, want uint32) {
		t.Helper()
		if got != want {
			t.Errorf("got code %#x, want %#x", got, want)
		}
	}
	t.Run("a feature that the edition does not have", func(t *testing.T) {
		_, code := featureState(t, session, "NoSuchFeature")
		wantCode(t, code, 0x800F080C)
		wantCode(t, enableFeature(t, session, "NoSuchFeature"), 0x800F080C)
	})
	t.Run("a feature without reboot is in force at once", func(t *testing.T) {
		wantState(t, "TelnetClient", disabled)
		wantCode(t, enableFeature(t, session, "telnetclient"), 0)
		wantState(t, "TelnetClient", installed)
		wantCode(t, disableFeature(t, session, "TelnetClient"), 0)
		wantState(t, "TelnetClient", disabled)
	})
	t.Run("a feature with reboot waits, and the servicing stack says so", func(t *testing.T) {
		wantState(t, "HypervisorPlatform", disabled)
		wantCode(t, enableFeature(t, session, "HypervisorPlatform"), 3010)
		wantState(t, "HypervisorPlatform", installPending)
		key, err := registry.OpenKey(registry.LOCAL_MACHINE,
			`SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending`, registry.READ)
		if err != nil {
			t.Fatal(err)
		}
		key.Close()
	})
	t.Run("a waiting change is taken back", func(t *testing.T) {
		wantCode(t, disableFeature(t, session, "HypervisorPlatform"), 0)
		wantState(t, "HypervisorPlatform", disabled)
	})
	t.Run("a session that is not open", func(t *testing.T) {
		_, code := featureState(t, session+1, "Containers")
		wantCode(t, code, 0xc0040004)
	})
}

// TestBeforeReboot and TestAfterReboot run in this order with a reboot between them. The other tests need the
// state after the first.
func TestBeforeReboot(t *testing.T) {
	session := openDISM(t)
	if state, _ := featureState(t, session, "Containers"); state != 2 {
		t.Skipf("the feature Containers is in state %d: this prefix was tested before", state)
	}
	t.Run("without the feature Containers there is no HNS", func(t *testing.T) {
		if _, err := hcn.ListNetworks(); err == nil || !errors.Is(errors.Unwrap(err), windows.ERROR_SERVICE_DOES_NOT_EXIST) &&
			!strings.Contains(err.Error(), "0x424") {
			t.Errorf("got error %v", err)
		}
	})
	if code := enableFeature(t, session, "Containers"); code != 3010 {
		t.Errorf("enable: %#x", code)
	}
	if _, err := hcn.ListNetworks(); err == nil {
		t.Error("HNS is there before the reboot")
	}
}

func TestAfterReboot(t *testing.T) {
	session := openDISM(t)
	if state, code := featureState(t, session, "Containers"); state != 4 {
		t.Fatalf("state %d, code %#x: reboot after TestBeforeReboot", state, code)
	}
	if _, err := hcn.ListNetworks(); err != nil {
		t.Fatal(err)
	}
}

func newOverlayNetwork(name, subnet, gateway string) *hcn.HostComputeNetwork {
	return &hcn.HostComputeNetwork{
		Type: hcn.Overlay, Name: name, SchemaVersion: hcn.SchemaVersion{Major: 2},
		Ipams: []hcn.Ipam{{Type: "Static", Subnets: []hcn.Subnet{{
			IpAddressPrefix: subnet, Routes: []hcn.Route{{NextHop: gateway, DestinationPrefix: "0.0.0.0/0"}},
		}}}},
	}
}

// removeNetworks removes the networks of an earlier run.
func removeNetworks(t *testing.T, names ...string) {
	t.Helper()
	networks, err := hcn.ListNetworks()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range networks {
		if slices.Contains(names, n.Name) {
			if err := n.Delete(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestNetworks(t *testing.T) {
	const name = `ovn "test" Ü`
	removeNetworks(t, name)
	network, err := newOverlayNetwork(name, "10.132.4.0/29", "10.132.4.1").Create()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("what was created is found by name and ID", func(t *testing.T) {
		for _, find := range []func() (*hcn.HostComputeNetwork, error){
			func() (*hcn.HostComputeNetwork, error) { return hcn.GetNetworkByName(name) },
			func() (*hcn.HostComputeNetwork, error) { return hcn.GetNetworkByID(strings.ToUpper(network.Id)) },
		} {
			got, err := find()
			if err != nil {
				t.Fatal(err)
			}
			if got.Id != network.Id || got.Name != name || got.Type != hcn.Overlay ||
				got.Ipams[0].Subnets[0].IpAddressPrefix != "10.132.4.0/29" {
				t.Errorf("got %+v", got)
			}
		}
	})
	t.Run("a second one of that name is refused", func(t *testing.T) {
		if _, err := newOverlayNetwork(name, "10.9.0.0/24", "10.9.0.1").Create(); err == nil ||
			!strings.Contains(err.Error(), "already exists") {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("an invalid subnet is refused", func(t *testing.T) {
		if _, err := newOverlayNetwork("bad", "10.9.0/24", "10.9.0.1").Create(); err == nil {
			t.Error("it was made")
		}
	})
	t.Run("endpoints get the addresses of the subnet, and no more than it has", func(t *testing.T) {
		checkEndpoints(t, network)
	})
	t.Run("a policy is added and removed", func(t *testing.T) { checkPolicies(t, network) })
	t.Run("a deleted network is gone with its endpoints", func(t *testing.T) {
		if err := network.Delete(); err != nil {
			t.Fatal(err)
		}
		if _, err := hcn.GetNetworkByName(name); !hcn.IsNotFoundError(err) {
			t.Errorf("got error %v", err)
		}
		if left, err := hcn.ListEndpointsOfNetwork(network.Id); err != nil || len(left) > 0 {
			t.Errorf("endpoints %v, error %v", left, err)
		}
		if err := network.Delete(); err == nil || !strings.Contains(err.Error(), "not found") {
			t.Errorf("got error %v", err)
		}
	})
}

func checkEndpoints(t *testing.T, network *hcn.HostComputeNetwork) {
	var got []string
	for i := range 5 {
		e, err := network.CreateEndpoint(&hcn.HostComputeEndpoint{Name: fmt.Sprint("pod", i),
			SchemaVersion: hcn.SchemaVersion{Major: 2}})
		if err != nil {
			t.Fatal(err)
		}
		if e.MacAddress == "" || e.HostComputeNetwork != network.Id || e.IpConfigurations[0].PrefixLength != 29 ||
			e.Routes[0].NextHop != "10.132.4.1" {
			t.Errorf("got %+v", e)
		}
		got = append(got, e.IpConfigurations[0].IpAddress)
	}
	if want := []string{"10.132.4.2", "10.132.4.3", "10.132.4.4", "10.132.4.5", "10.132.4.6"}; !slices.Equal(got, want) {
		t.Errorf("addresses %v, want %v", got, want)
	}
	if e, err := network.CreateEndpoint(&hcn.HostComputeEndpoint{Name: "one too many"}); err == nil {
		t.Errorf("a sixth was made: %+v", e)
	}
	third, err := hcn.GetEndpointByName("pod2")
	if err != nil {
		t.Fatal(err)
	}
	if err := third.Delete(); err != nil {
		t.Fatal(err)
	}
	if _, err := hcn.GetEndpointByName("pod2"); !hcn.IsNotFoundError(err) {
		t.Errorf("after its end: error %v", err)
	}
	wanted := []hcn.IpConfig{{IpAddress: "10.132.4.4", PrefixLength: 29}}
	if _, err := network.CreateEndpoint(&hcn.HostComputeEndpoint{Name: "source-vip",
		IpConfigurations: wanted}); err != nil {
		t.Errorf("an address that is free again: %v", err)
	}
	if _, err := network.CreateEndpoint(&hcn.HostComputeEndpoint{Name: "twice", IpConfigurations: wanted}); err == nil {
		t.Error("an address was given twice")
	}
}

func checkPolicies(t *testing.T, network *hcn.HostComputeNetwork) {
	request := hcn.PolicyNetworkRequest{Policies: []hcn.NetworkPolicy{{
		Type: hcn.RemoteSubnetRoute, Settings: []byte(`{"DestinationPrefix":"10.132.5.0/24","IsolationId":4097}`),
	}}}
	count := func() int {
		n, err := hcn.GetNetworkByID(network.Id)
		if err != nil {
			t.Fatal(err)
		}
		return len(n.Policies)
	}
	if err := network.AddPolicy(request); err != nil || count() != 1 {
		t.Errorf("add: error %v, %d policies", err, count())
	}
	if err := network.RemovePolicy(request); err != nil || count() != 0 {
		t.Errorf("remove: error %v, %d policies", err, count())
	}
}

func TestNetworks_ConcurrentEndpointsGetUniqueAddresses(t *testing.T) {
	removeNetworks(t, "crowd")
	network, err := newOverlayNetwork("crowd", "10.140.0.0/24", "10.140.0.1").Create()
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	addresses := make([]string, 20)
	for i := range addresses {
		group.Go(func() {
			if e, err := network.CreateEndpoint(&hcn.HostComputeEndpoint{Name: fmt.Sprint("crowd", i)}); err != nil {
				t.Error(err)
			} else {
				addresses[i] = e.IpConfigurations[0].IpAddress
			}
		})
	}
	group.Wait()
	slices.Sort(addresses)
	if len(slices.Compact(addresses)) != 20 {
		t.Errorf("an address was given twice: %v", addresses)
	}
	if err := network.Delete(); err != nil {
		t.Error(err)
	}
}

func TestVersionAndNoLoadBalancers(t *testing.T) {
	if err := hcn.V2ApiSupported(); err != nil {
		t.Error(err)
	}
	if list, err := hcn.ListLoadBalancers(); err != nil || len(list) != 0 {
		t.Errorf("load balancers %v, error %v", list, err)
	}
}

// firewallRules opens the collection of rules until the test ends.
func firewallRules(t *testing.T) *ole.IDispatch {
	t.Helper()
	runtime.LockOSThread()
	if err := ole.CoInitializeEx(0, ole.COINIT_MULTITHREADED); err != nil {
		t.Fatal(err)
	}
	policy := createObject(t, "HNetCfg.FwPolicy2")
	rules := oleutil.MustGetProperty(policy, "Rules").ToIDispatch()
	t.Cleanup(func() { rules.Release(); ole.CoUninitialize() })
	return rules
}

func createObject(t *testing.T, class string) *ole.IDispatch {
	t.Helper()
	unknown, err := oleutil.CreateObject(class)
	if err != nil {
		t.Fatalf("create %s: %v", class, err)
	}
	dispatch, err := unknown.QueryInterface(ole.IID_IDispatch)
	unknown.Release()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dispatch.Release() })
	return dispatch
}

// ruleNames enumerates the rules.
func ruleNames(t *testing.T, rules *ole.IDispatch) []string {
	t.Helper()
	var all []string
	err := oleutil.ForEach(rules, func(v *ole.VARIANT) error {
		rule := v.ToIDispatch()
		defer rule.Release()
		all = append(all, oleutil.MustGetProperty(rule, "Name").ToString())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFirewall(t *testing.T) {
	rules := firewallRules(t)
	const name = "OpenShift managed kubelet (test)"
	if _, err := oleutil.CallMethod(rules, "Remove", name); err != nil {
		t.Fatalf("remove what is not there: %v", err)
	}
	before := ruleNames(t, rules)
	if !slices.Contains(before, "OpenSSH SSH Server (sshd)") {
		t.Errorf("the system's own rules are not there: %v", before)
	}
	rule := createObject(t, "HNetCfg.FWRule")
	put := func(property string, value any) error {
		_, err := oleutil.PutProperty(rule, property, value)
		return err
	}
	t.Run("a port is refused before the protocol", func(t *testing.T) {
		if err := put("LocalPorts", "10250"); err == nil {
			t.Error("it was taken")
		}
	})
	for _, p := range []struct {
		name  string
		value any
	}{{"Name", name}, {"Description", "for the API server, 100%"}, {"Protocol", 6}, {"LocalPorts", "10250,10255-10256"}, {"Direction", 1}, {"Action", 1}, {"Enabled", true}, {"Grouping", "OpenShift"}} {
		if err := put(p.name, p.value); err != nil {
			t.Fatalf("set %s: %v", p.name, err)
		}
	}
	t.Run("an invalid port is refused", func(t *testing.T) {
		if err := put("LocalPorts", "70000"); err == nil {
			t.Error("it was taken")
		}
	})
	if _, err := oleutil.CallMethod(rules, "Add", rule); err != nil {
		t.Fatal(err)
	}
	t.Run("the rule is found with its properties", func(t *testing.T) {
		found := oleutil.MustCallMethod(rules, "Item", strings.ToUpper(name)).ToIDispatch()
		defer found.Release()
		for property, want := range map[string]any{
			"Name": name, "Description": "for the API server, 100%", "Protocol": int32(6), "LocalPorts": "10250,10255-10256", "RemotePorts": "*",
			"Direction": int32(1), "Action": int32(1), "Enabled": true, "Profiles": int32(0x7FFFFFFF), "Grouping": "OpenShift", "RemoteAddresses": "*",
		} {
			if got := oleutil.MustGetProperty(found, property).Value(); got != want {
				t.Errorf("%s is %v (%T), want %v", property, got, got, want)
			}
		}
		if _, err := oleutil.PutProperty(found, "Enabled", false); err != nil {
			t.Fatal(err)
		}
		again := oleutil.MustCallMethod(rules, "Item", name).ToIDispatch()
		defer again.Release()
		if oleutil.MustGetProperty(again, "Enabled").Value() != false {
			t.Error("a change of a rule of the policy is not in force")
		}
	})
	t.Run("a method is no property, and a property no method", func(t *testing.T) {
		if _, err := oleutil.GetProperty(rules, "Item", name); err == nil {
			t.Error("Item was read as a property")
		}
		if _, err := oleutil.CallMethod(rules, "Count"); err == nil {
			t.Error("Count was called as a method")
		}
	})
	t.Run("of two rules of one name Remove takes the outbound one", func(t *testing.T) {
		outbound := createObject(t, "HNetCfg.FWRule")
		for property, value := range map[string]any{"Name": name, "Direction": 2} {
			if _, err := oleutil.PutProperty(outbound, property, value); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := oleutil.CallMethod(rules, "Add", outbound); err != nil {
			t.Fatal(err)
		}
		if _, err := oleutil.CallMethod(rules, "Remove", name); err != nil {
			t.Fatal(err)
		}
		left := oleutil.MustCallMethod(rules, "Item", name).ToIDispatch()
		defer left.Release()
		if oleutil.MustGetProperty(left, "Direction").Value() != int32(1) {
			t.Error("the inbound one was removed")
		}
	})
	t.Run("all are enumerated", func(t *testing.T) {
		if got := ruleNames(t, rules); len(got) != len(before)+1 || !slices.Contains(got, name) {
			t.Errorf("got %v", got)
		}
		if got := oleutil.MustGetProperty(rules, "Count").Value(); got != int32(len(before)+1) {
			t.Errorf("count %v", got)
		}
	})
	t.Run("a removed rule is not found: 0x80070002", func(t *testing.T) {
		if _, err := oleutil.CallMethod(rules, "Remove", name); err != nil {
			t.Fatal(err)
		}
		_, err := oleutil.CallMethod(rules, "Item", name)
		var oleError *ole.OleError
		var exception ole.EXCEPINFO
		if !errors.As(err, &oleError) || oleError.Code() != 0x80020009 || !errors.As(oleError.SubError(), &exception) || exception.SCODE() != 0x80070002 {
			t.Errorf("got error %v", err)
		}
	})
}
