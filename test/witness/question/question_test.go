package question

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func findQuestion(t *testing.T, id string) Question {
	t.Helper()
	for _, q := range All() {
		if q.ID == id {
			return q
		}
	}
	t.Fatalf("there is no question %s", id)
	return Question{}
}

func TestQuestions_AssumptionsNameExistingFiles(t *testing.T) {
	known := map[string]bool{}
	for _, q := range All() {
		if known[q.ID] {
			t.Errorf("two questions are %s", q.ID)
		}
		known[q.ID] = true
		content, err := os.ReadFile(filepath.Join("../../..", q.Relies.File))
		if err != nil || !strings.Contains(string(content), q.Relies.Name) {
			t.Errorf("%s: %v is not there", q.ID, q.Relies)
		}
	}
}

const (
	overlay   = `"networks": [{"type": "Overlay", "policies": ["VxlanPort", "HostRoute"], "management": "default route"}]`
	noRoute   = `"networks": [{"type": "overlay", "policies": ["VxlanPort"], "management": "another adapter"}]`
	dhcp      = `"adapters": [{"connected": true, "defaultRoute": true, "dhcp": true, "mtu": 1500}]`
	static    = `"adapters": [{"connected": true, "defaultRoute": true, "mtu": 8900}]`
	onDefault = `"adapters": [{"connected": true, "defaultRoute": true, "virtual": true, "mtu": 1500}, {"connected": true}]`
	two       = `"adapters": [{"connected": true, "defaultRoute": true}, {"connected": true}]`
	trustedBy = `O:BAD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)`
)

// Evidence is written in the format of the documents.
func TestVerdicts(t *testing.T) {
	for _, test := range []struct {
		name, id      string
		found, before string
		want          Verdict
	}{
		{"an emptied log begins anew", "N1", `{"rename": "in use", "size": 6, "written": 6}`, "", Holds},
		{"an emptied log keeps its length", "N1", `{"size": 606, "written": 6}`, "", Contradicted},
		{"a log cannot be emptied", "N1", `{"empty": "in use"}`, "", Contradicted},
		{"attached at the second attempt, refused afterward", "N2", `{"tries": ["0x80070022", ""], "again": "hnsCall failed: 0x803B0014", "state": 2}`, "", Holds},
		{"an adapter counts where the state is another one", "N2", `{"tries": [""], "again": "This endpoint is already attached to the switch.", "state": 5, "adapter": true}`, "", Holds},
		{"neither state nor adapter", "N2", `{"tries": [""], "state": 5}`, "", Contradicted},
		{"another error at the second time", "N2", `{"tries": [""], "again": "0x80070057", "state": 2}`, "", Contradicted},
		{"never attached", "N2", `{"tries": ["a", "b"]}`, "", Contradicted},
		{"attached too late", "N2", `{"tries": ["a", "a", "a", "a", "a", "a", "a", "a", "a", "a", ""], "state": 2}`, "", Contradicted},
		{"a session with the privilege", "N3", `{"ssh": true, "exitWindows": "Access is denied.", "seShutdownPrivilege": true}`, "", Holds},
		{"a session without it", "N3", `{"ssh": true}`, "", Contradicted},
		{"no session", "N3", `{"seShutdownPrivilege": true}`, "", Unknown},
		{"the network uses the default route's adapter", "N4", `{` + dhcp + `, ` + overlay + `}`, "", Holds},
		{"HNS took the other adapter", "N4", `{` + two + `, ` + noRoute + `}`, "", Holds},
		{"the only adapter has another address", "N4", `{` + onDefault + `, ` + noRoute + `}`, "", Contradicted},
		{"no network", "N4", `{` + dhcp + `}`, "", Unknown},
		{"a static address stays", "N5", `{` + static + `, ` + overlay + `, "deviceLessNicDisabled": 1}`, `{` + static + `}`, Holds},
		{"a static address goes", "N5", `{` + dhcp + `, ` + overlay + `}`, `{` + static + `}`, Contradicted},
		{"an address of DHCP", "N5", `{` + dhcp + `, ` + overlay + `}`, `{` + dhcp + `}`, Unknown},
		{"nothing from before", "N5", `{` + dhcp + `, ` + overlay + `}`, "", Unknown},
		{"no policy", "N6", `{"profiles": 4, "allowLocalPolicyMerge": {"PublicProfile": null}}`, `{"profiles": 2}`, Unknown},
		{"excluded, as Windows says", "N6", `{"profiles": 1, "allowLocalPolicyMerge": {"DomainProfile": 0}, "localPolicyModifyState": 1}`, "", Holds},
		{"excluded, which Windows denies", "N6", `{"profiles": 1, "allowLocalPolicyMerge": {"DomainProfile": 0}}`, "", Contradicted},
		{"overridden by something else", "N6", `{"profiles": 1, "allowLocalPolicyMerge": {"PublicProfile": 0}, "localPolicyModifyState": 1}`, "", Contradicted},
		{"HostRoute is listed", "N7", `{` + overlay + `}`, "", Holds},
		{"other policies are", "N7", `{` + noRoute + `}`, "", Contradicted},
		{"a junction is a folder", "N8", `{"junction": "drwxrwxrwx", "junctionInList": "drwxrwxrwx", "symlink": "Lrwxrwxrwx", "target": true}`, "", Holds},
		{"a junction is a link", "N8", `{"junction": "Lrwxrwxrwx", "junctionInList": "drwxrwxrwx", "symlink": "Lrwxrwxrwx", "target": true}`, "", Contradicted},
		{"what a junction leads to is deleted", "N8", `{"junction": "drwxrwxrwx", "junctionInList": "drwxrwxrwx", "symlink": "Lrwxrwxrwx"}`, "", Contradicted},
		{"keys of this machine", "N9", `{"installed": "2026-01-01T00:00:00Z", "made": ["2026-01-01T01:00:00Z"]}`, "", Holds},
		{"keys of an image", "N9", `{"installed": "2026-01-01T00:00:00Z", "made": ["2026-01-01T01:00:00Z", "2025-01-01T00:00:00Z"]}`, "", Contradicted},
		{"2022 with Containers", "N10", `{"build": 20348, "features": {"Containers": "Enabled"}, "services": {"hns": true}}`, "", Holds},
		{"2022 with Containers, without hns", "N10", `{"build": 20348, "features": {"Containers": "Enabled"}}`, "", Contradicted},
		{"2025 knows the features", "N10", `{"build": 26100, "features": {"Containers": "Enabled", "Containers-HNS": "Enabled", "Containers-SDN": "Enabled"}, "services": {"hns": true}}`, "", Holds},
		{"2025 does not", "N10", `{"build": 26100, "features": {"Containers": "Enabled"}, "services": {"hns": true}}`, "", Contradicted},
		{"2025 needs none of them", "N10", `{"build": 26100, "features": {"Containers": "Enabled", "Containers-HNS": "Disabled", "Containers-SDN": "Disabled"}, "services": {"hns": true}}`, "", Contradicted},
		{"nothing is enabled yet", "N10", `{"build": 20348, "features": {"Containers": "Disabled"}}`, "", Unknown},
		{"a silent adapter", "N11", `{"adapters": [{"vipEndpoint": true, "registrationEnabled": 0}]}`, "", Holds},
		{"an adapter that registers all the same", "N11", `{"adapters": [{"vipEndpoint": true, "registrationEnabled": 0, "registersInDNS": true}]}`, "", Contradicted},
		{"no node", "N11", `{` + dhcp + `}`, "", Unknown},
		{"a scanner lets go in time", "N12", `{"files": 10, "refused": ["failure"], "milliseconds": 700}`, "", Holds},
		{"or not", "N12", `{"files": 10, "refused": ["failure"], "milliseconds": 2100}`, "", Contradicted},
		{"many endpoints", "N13", `{"endpoints": 200, "milliseconds": 900}`, "", Holds},
		{"a slow HNS", "N13", `{"endpoints": 20, "milliseconds": 9000}`, "", Contradicted},
		{"few endpoints", "N13", `{"endpoints": 2, "milliseconds": 9}`, "", Unknown},
		{"a session of sshd", "A1", `{"ssh": true, "service": "sshd"}`, "", Holds},
		{"a session that leads nowhere", "A1", `{"ssh": true}`, "", Contradicted},
		{"hns is stopped", "A2", `{"there": true, "startType": 3, "state": 1}`, "", Holds},
		{"hns is disabled", "A2", `{"there": true, "startType": 4, "state": 1}`, "", Contradicted},
		{"jumbo packets stay", "A3", `{` + static + `, ` + overlay + `}`, `{` + static + `}`, Holds},
		{"they do not", "A3", `{` + dhcp + `, ` + overlay + `}`, `{` + static + `}`, Contradicted},
		{"they cannot be told apart", "A3", `{` + dhcp + `, ` + overlay + `}`, `{` + dhcp + `}`, Unknown},
		{"administrators only", "A4", `{"sddl": "` + trustedBy + `(A;OICI;0x1200a9;;;AU)"}`, "", Holds},
		{"users may write", "A4", `{"sddl": "` + trustedBy + `(A;OICI;0x1301bf;;;AU)"}`, "", Contradicted},
		{"users are refused", "A4", `{"sddl": "` + trustedBy + `(D;OICI;FA;;;BU)"}`, "", Holds},
		{"a user is the owner", "A4", `{"sddl": "O:S-1-5-21-1-2-3-1001D:PAI(A;OICI;FA;;;SY)"}`, "", Contradicted},
		{"no access list", "A4", `{"sddl": "O:BAD:NO_ACCESS_CONTROL"}`, "", Contradicted},
	} {
		t.Run(test.id+" "+test.name, func(t *testing.T) {
			q := findQuestion(t, test.id)
			earlier, err := json.Marshal(Document{Schema: schema, Question: q.ID, Assumes: q.Assumes, Verdict: Unknown, Evidence: json.RawMessage(test.before)})
			if test.before == "" {
				earlier, err = nil, nil
			}
			if err != nil {
				t.Fatal(err)
			}
			dir := fstest.MapFS{}
			if earlier != nil {
				dir[q.fileName()] = &fstest.MapFile{Data: earlier}
			}
			before, err := q.Before(dir)
			if err != nil {
				t.Fatal(err)
			}
			found := q.Evidence()
			if err := json.Unmarshal([]byte(test.found), found); err != nil {
				t.Fatal(err)
			}
			d, err := q.Answer("Windows Server 2022", found, before, nil)
			if err != nil || d.Verdict != test.want || d.Answer == "" {
				t.Errorf("%v, %v", d, err)
			}
			if named := strings.Contains(d.String(), q.Relies.File); named != (test.want == Contradicted) {
				t.Errorf("the file that relies on it is named: %t", named)
			}
		})
	}
}

func TestDocuments(t *testing.T) {
	q, dir := findQuestion(t, "N9"), t.TempDir()
	d, err := q.Answer("Windows", &HostKeys{Created: []time.Time{time.Unix(1, 0)}}, nil, nil)
	if err := errors.Join(err, d.Write(dir)); err != nil {
		t.Fatal(err)
	}
	if read, err := q.Read(os.DirFS(dir)); err != nil || read.Verdict != d.Verdict || read.Answer != d.Answer {
		t.Errorf("%+v, %v", read, err)
	}
	if d, err := q.Answer("Windows", nil, nil, errors.New("the registry is gone")); err != nil || d.Verdict != Unknown || d.Answer != "the registry is gone" {
		t.Errorf("%+v, %v", d, err)
	}
	q.Assumes = "something else"
	if _, err := q.Read(os.DirFS(dir)); err == nil {
		t.Error("the answer to another question is accepted")
	}
}

func TestPlainSDDL(t *testing.T) {
	if got := PlainSDDL("O:S-1-5-21-12-34-56-1001D:(A;;FA;;;BA)"); got != "O:S-1-5-21-0-0-0-1001D:(A;;FA;;;BA)" {
		t.Error(got)
	}
}

func TestParseFeatures(t *testing.T) {
	got := ParseFeatures("Feature Name            | State\r\n----------------------- | --------\r\nContainers              | Enabled\r\n" +
		"Containers-HNS          | Disabled with Payload Removed\r\nHyper-V                 | Disabled\r\nDisabled-Containers     | Enabled\r\n")
	if len(got) != 2 || got["Containers"] != "Enabled" || got["Containers-HNS"] != "Disabled with Payload Removed" {
		t.Errorf("%q", got)
	}
}
