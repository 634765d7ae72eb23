package monitoring

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func newAddress(i int) address {
	return address{node: fmt.Sprintf("node-%04d", i), uid: types.UID(fmt.Sprint(i)),
		ip: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, 1+i&255)}
}

func newAddresses(n int) []address {
	var all []address
	for i := range n {
		all = append(all, newAddress(i))
	}
	return all
}

// store holds the EndpointSlices of an API server.
type store map[string]discoveryv1.EndpointSlice

// applyAddresses writes the changes for the addresses to the store, and returns the written and deleted slices.
func (s store) applyAddresses(addresses []address) sliceChanges {
	present := slices.SortedFunc(maps.Values(s), func(a, b discoveryv1.EndpointSlice) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	changes := diffSlices("wmco", present, addresses)
	for _, slice := range changes.write {
		slice.ResourceVersion = "some"
		s[slice.Name] = *slice
	}
	for _, slice := range changes.remove {
		delete(s, slice.Name)
	}
	return changes
}

// addressesByNode returns the addresses by the names of their nodes, and whether an address is listed twice.
func (s store) addressesByNode() (ips map[string]string, twice bool) {
	ips = map[string]string{}
	for _, slice := range s {
		for _, endpoint := range slice.Endpoints {
			_, exists := ips[*endpoint.NodeName]
			twice = twice || exists
			ips[*endpoint.NodeName] = endpoint.Addresses[0]
		}
	}
	return ips, twice
}

//
func TestSlices_HaveExactlyDesiredAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := store{}
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			var addresses []address
			want := map[string]string{}
			from, to := rapid.IntRange(0, 400).Draw(t, "from"), rapid.IntRange(0, 700).Draw(t, "to")
			moved := rapid.IntRange(0, 700).Draw(t, "moved")
			for i := from; i < to; i++ {
				a := newAddress(i)
				if i == moved {
					a.ip = "192.168.0.1"
				}
				addresses = append(addresses, a)
				want[a.node] = a.ip
			}
			s.applyAddresses(addresses)
			got, twice := s.addressesByNode()
			if !maps.Equal(got, want) || twice {
				t.Fatalf("%d addresses are listed, twice %v, want %d", len(got), twice, len(want))
			}
			for name, slice := range s {
				if n := len(slice.Endpoints); n == 0 || n > maxSliceEndpoints {
					t.Fatalf("slice %s has %d addresses", name, n)
				}
			}
			if again := s.applyAddresses(addresses); len(again.write)+len(again.remove) > 0 {
				t.Fatalf("looked at again, %d slices are written and %d deleted", len(again.write), len(again.remove))
			}
		}
	})
}

func TestSlices_JoinOrRemovalChangesOneSlice(t *testing.T) {
	s := store{}
	if first := s.applyAddresses(newAddresses(1000)); len(first.write) != 10 {
		t.Fatalf("1,000 addresses are in %d slices", len(first.write))
	}
	if join := s.applyAddresses(newAddresses(1001)); len(join.write) != 1 || len(join.write[0].Endpoints) != 1 {
		t.Errorf("a join writes %d slices", len(join.write))
	}
	if join := s.applyAddresses(newAddresses(1002)); len(join.write) != 1 || len(join.write[0].Endpoints) != 2 {
		t.Errorf("another join writes %d slices", len(join.write))
	}
	left := slices.Delete(newAddresses(1002), 500, 501)
	if leave := s.applyAddresses(left); len(leave.write) != 1 || len(leave.remove) != 0 {
		t.Errorf("a leave writes %d slices and deletes %d", len(leave.write), len(leave.remove))
	}
	t.Run("and a new node fills the gap", func(t *testing.T) {
		refill := s.applyAddresses(append(left, newAddress(2000)))
		if len(refill.write) != 1 || len(refill.write[0].Endpoints) != maxSliceEndpoints {
			t.Errorf("%d slices are written", len(refill.write))
		}
	})
	t.Run("the last one of a slice takes the slice with it", func(t *testing.T) {
		if leave := s.applyAddresses(newAddresses(1000)); len(leave.remove) != 1 {
			t.Errorf("%d slices are deleted", len(leave.remove))
		}
	})
	t.Run("a node with another UID is another one", func(t *testing.T) {
		again := newAddresses(1000)
		again[7].uid = "new"
		if remade := s.applyAddresses(again); len(remade.write) != 1 {
			t.Errorf("%d slices are written", len(remade.write))
		}
	})
}

func TestSlices_ForeignSliceNotChanged(t *testing.T) {
	mirrored := *newSlice("wmco", Name+"-x7k2p")
	mirrored.Labels[discoveryv1.LabelManagedBy] = "endpointslicemirroring-controller.k8s.io"
	mirrored.Endpoints = []discoveryv1.Endpoint{endpointOf(newAddress(1))}
	squatter := discoveryv1.EndpointSlice{}
	squatter.Name = Name + "-0"
	s := store{mirrored.Name: mirrored, squatter.Name: squatter}
	changes := s.applyAddresses(newAddresses(2))
	if len(changes.write) != 1 || changes.write[0].Name != Name+"-1" || len(changes.remove) != 0 {
		t.Errorf("written %v, deleted %v", changes.write, changes.remove)
	}
	if changes := s.applyAddresses(nil); len(changes.remove) != 1 || len(s) != 2 {
		t.Errorf("deleted %v", changes.remove)
	}
}

func TestSlices_ChangedSliceCorrected(t *testing.T) {
	for name, change := range map[string]func(*discoveryv1.EndpointSlice){
		"another port":       func(s *discoveryv1.EndpointSlice) { *s.Ports[0].Port = 22 },
		"no port":            func(s *discoveryv1.EndpointSlice) { s.Ports = nil },
		"a strange address":  func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses = []string{"10.9.9.9"} },
		"an address too few": func(s *discoveryv1.EndpointSlice) { s.Endpoints = s.Endpoints[1:] },
		"another label":      func(s *discoveryv1.EndpointSlice) { s.Labels[labelName] = "other" },
		"one twice":          func(s *discoveryv1.EndpointSlice) { s.Endpoints = append(s.Endpoints, s.Endpoints[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			s := store{}
			slice := s.applyAddresses(newAddresses(3)).write[0]
			broken := *slice.DeepCopy()
			change(&broken)
			s[slice.Name] = broken
			if changes := s.applyAddresses(newAddresses(3)); len(changes.write) != 1 {
				t.Fatalf("%d slices are written", len(changes.write))
			}
			if got, twice := s.addressesByNode(); len(got) != 3 || twice || *s[slice.Name].Ports[0].Port != exporterPort {
				t.Errorf("%v", s[slice.Name])
			}
		})
	}
}
