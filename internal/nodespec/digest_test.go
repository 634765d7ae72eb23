package nodespec_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// fullSpec returns a spec with all fields set.
func fullSpec() nodespec.NodeSpec {
	return nodespec.NodeSpec{
		Schema: nodespec.SchemaVersion, Instance: "a", Version: "1.0.0", HostName: "a", NodeName: "a",
		Features:    []string{"Containers"},
		Directories: []nodespec.Directory{{Path: nodespec.Root, Access: host.AccessAdministrators}},
		Releases: []nodespec.Release{{Component: "c", Version: "v1", Directory: `C:\k\releases\c`,
			Files: []nodespec.PayloadFile{{Name: "c.exe", SHA256: "00", Size: 1}}}},
		Links:       []nodespec.Link{{Path: `C:\k\c.exe`, Target: `C:\k\releases\c\c.exe`}},
		Files:       []nodespec.File{{Path: `C:\k\f`, Content: "ü", Needs: []nodespec.Need{nodespec.NeedPodSubnet}}},
		Environment: map[string]string{"B": "2", "A": "1"},
		Firewall: []host.FirewallRule{{Name: "r", DisplayName: "r", Protocol: "TCP", LocalPort: 1,
			Enabled: true, Allow: true}},
		Identity: nodespec.Identity{Directory: `C:\pki`, CommonName: "system:node:a", Organization: "system:nodes",
			Certificate: "pem"},
		Services: []nodespec.Service{{
			ServiceConfig: host.ServiceConfig{Name: "s", CommandLine: "s.exe", StartType: host.StartAutomatic,
				RestartDelays: []time.Duration{time.Second}},
			Needs: []nodespec.Need{nodespec.NeedCertificate}, RestartOn: []string{`C:\k\f`}, DisruptsPods: true,
		}},
		Network: nodespec.Network{PodSubnet: "10.0.0.0/24", HNSNetwork: "n", OwnedNetworks: []string{"n"},
			SourceVIPEndpoint: "e"},
		Checks: []nodespec.Check{{Name: "c", Kind: nodespec.CheckHTTP, Target: "http://127.0.0.1/", Advisory: true,
			Timeout: time.Second}},
	}
}

func TestDigest_DependsOnlyOnHostInputs(t *testing.T) {
	digest := fullSpec().Digest()
	t.Run("is the same for equal specs", func(t *testing.T) {
		if again := fullSpec().Digest(); again != digest {
			t.Error(again)
		}
	})
	t.Run("does not depend on the operator's version and the certificate", func(t *testing.T) {
		s := fullSpec()
		s.Version, s.Identity.Certificate = "2.0.0", ""
		if s.Digest() != digest {
			t.Error("it does")
		}
	})
	t.Run("leaves the spec as it is", func(t *testing.T) {
		s := fullSpec()
		s.Digest()
		if !reflect.DeepEqual(s, fullSpec()) {
			t.Error("it does not")
		}
	})
	for name, change := range map[string]func(*nodespec.NodeSpec){
		"a file's content":   func(s *nodespec.NodeSpec) { s.Files[0].Content += "\n" },
		"the pod subnet":     func(s *nodespec.NodeSpec) { s.Network.PodSubnet = "" },
		"a command line":     func(s *nodespec.NodeSpec) { s.Services[0].CommandLine += " -v" },
		"a variable":         func(s *nodespec.NodeSpec) { s.Environment["A"] = "" },
		"what a check takes": func(s *nodespec.NodeSpec) { s.Checks[0].Timeout++ },
	} {
		t.Run("differs with "+name, func(t *testing.T) {
			s := fullSpec()
			change(&s)
			if s.Digest() == digest {
				t.Error("it does not")
			}
		})
	}
}

func TestEncode(t *testing.T) {
	data, err := fullSpec().Encode()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("gives back the same spec", func(t *testing.T) {
		s, err := nodespec.Decode(data)
		if err != nil || !reflect.DeepEqual(s, fullSpec()) {
			t.Errorf("%v: %+v", err, s)
		}
	})
	t.Run("another schema version is refused with both versions", func(t *testing.T) {
		_, err := nodespec.Decode([]byte(`{"schema": 7}`))
		if err == nil || !strings.Contains(err.Error(), "version 7") {
			t.Error(err)
		}
	})
	t.Run("what is no JSON is refused", func(t *testing.T) {
		if _, err := nodespec.Decode(data[:len(data)/2]); err == nil {
			t.Error("it is taken")
		}
	})
}

func FuzzDecode(f *testing.F) {
	data, err := fullSpec().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"schema":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := nodespec.Decode(data)
		if err != nil {
			return
		}
		encoded, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := nodespec.Decode(encoded)
		if err != nil || again.Digest() != s.Digest() {
			t.Fatalf("%v: it does not survive being sent", err)
		}
	})
}
