package question

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Log is the evidence of N1: a log that is open for appending, like the logs of node programs, and for reading
// without FILE_SHARE_DELETE.
type Log struct {
	Rename string `json:"rename"` // errors
	Empty  string `json:"empty"`
	// Size is the length of the log after Written bytes were written to the emptied log.
	Size    int64 `json:"size"`
	Written int64 `json:"written"`
}

func judgeLog(e, _ *Log) (Verdict, string) {
	rename := "accepted"
	if e.Rename != "" {
		rename = "refused (" + e.Rename + ")"
	}
	switch {
	case e.Empty != "":
		return contradictedVerdict("the log cannot be emptied: " + e.Empty)
	case e.Size != e.Written:
		return contradictedVerdict(fmt.Sprintf("%d bytes after the log was emptied made it %d bytes long", e.Written, e.Size))
	}
	return holdsVerdict("the log was emptied, and the writer goes on at its beginning; a rename is " + rename)
}

// Restart is the evidence of N3.
type Restart struct {
	SSH       bool   `json:"ssh"`
	Station   string `json:"windowStation"`
	Exit      string `json:"exitWindows"` // the error of opening the station with WINSTA_EXITWINDOWS
	Privilege bool   `json:"seShutdownPrivilege"`
}

func judgeRestart(e, _ *Restart) (Verdict, string) {
	exit := "granted"
	if e.Exit != "" {
		exit = "denied (" + e.Exit + ")"
	}
	answer := fmt.Sprintf("%s: WINSTA_EXITWINDOWS %s, SeShutdownPrivilege %t", e.Station, exit, e.Privilege)
	switch {
	case !e.SSH:
		return unknownVerdict("not asked over SSH; " + answer)
	case !e.Privilege:
		return contradictedVerdict(answer)
	}
	return holdsVerdict(answer)
}

// Firewall is the evidence of N6.
type Firewall struct {
	Profiles int                `json:"profiles"` // active profiles, as bits: 1 domain, 2 private, 4 public
	Merge    map[string]*uint32 `json:"allowLocalPolicyMerge"`
	// ModifyState is INetFwPolicy2.LocalPolicyModifyState: 0, local rules take effect; 1, a group policy overrides
	// them.
	ModifyState int `json:"localPolicyModifyState"`
}

// FirewallProfiles maps the registry keys of the profiles to their bits.
var FirewallProfiles = map[string]int{"DomainProfile": 1, "PrivateProfile": 2, "PublicProfile": 4}

func judgeFirewall(e, before *Firewall) (Verdict, string) {
	profiles := fmt.Sprintf("profiles in force: %d", e.Profiles)
	if before != nil {
		profiles = fmt.Sprintf("profiles in force: %d before, %d now", before.Profiles, e.Profiles)
	}
	var excluded []string
	for _, name := range slices.Sorted(maps.Keys(e.Merge)) {
		if value := e.Merge[name]; value != nil && *value == 0 && e.Profiles&FirewallProfiles[name] != 0 {
			excluded = append(excluded, name)
		}
	}
	switch {
	case len(excluded) == 0 && e.ModifyState == 1:
		return contradictedVerdict("a group policy overrides local rules, and no profile in force has AllowLocalPolicyMerge 0; " + profiles)
	case len(excluded) == 0:
		return unknownVerdict("no group policy excludes local rules from a profile in force; " + profiles)
	case e.ModifyState == 0:
		return contradictedVerdict("AllowLocalPolicyMerge is 0 in " + strings.Join(excluded, ", ") + ", and Windows says that local rules take effect; " + profiles)
	}
	return holdsVerdict("Windows says that local rules do not take effect in " + strings.Join(excluded, ", ") + "; " + profiles)
}

// Links is the evidence of N8: file modes reported by SFTP, and errors.
type Links struct {
	Junction string `json:"junction"`
	Listed   string `json:"junctionInList"`
	Symlink  string `json:"symlink"`
	Remove   string `json:"remove"` // the error of deleting the junction as a directory
	Target   bool   `json:"target"` // the target of the junction exists afterward
}

func judgeLinks(e, _ *Links) (Verdict, string) {
	answer := fmt.Sprintf("junction %s, in a list %s; symbolic link %s", e.Junction, e.Listed, e.Symlink)
	switch {
	case !strings.HasPrefix(e.Junction, "d") || !strings.HasPrefix(e.Listed, "d") || !strings.HasPrefix(e.Symlink, "L"):
		return contradictedVerdict(answer)
	case e.Remove != "" || !e.Target:
		return contradictedVerdict(fmt.Sprintf("%s; deletion of the junction: %q, its target stays: %t", answer, e.Remove, e.Target))
	}
	return holdsVerdict(answer + "; a junction is deleted without its target")
}

// HostKeys is the evidence of N9.
type HostKeys struct {
	Installed time.Time   `json:"installed"`
	Created   []time.Time `json:"made"`
}

func judgeHostKeys(e, _ *HostKeys) (Verdict, string) {
	if len(e.Created) == 0 {
		return unknownVerdict("there are no host keys")
	}
	first := slices.MinFunc(e.Created, time.Time.Compare)
	if first.Before(e.Installed) {
		return contradictedVerdict("host keys are " + e.Installed.Sub(first).Round(time.Minute).String() + " older than the installation")
	}
	return holdsVerdict("the oldest host key is " + first.Sub(e.Installed).Round(time.Minute).String() + " younger than the installation")
}

// Features is the evidence of N10.
type Features struct {
	Build    int               `json:"build"`
	Features map[string]string `json:"features"` // states of the features with "Containers" in their names
	Services map[string]bool   `json:"services"` // whether hns and vfpext exist
}

var featureRow = regexp.MustCompile(`(?m)^(Containers[\w-]*)\s*\|\s*(\w[\w ]*?)\s*$`)

// ParseFeatures parses the output of "dism /online /english /get-features /format:table".
func ParseFeatures(table string) map[string]string {
	features := map[string]string{}
	for _, row := range featureRow.FindAllStringSubmatch(strings.ReplaceAll(table, "\r", ""), -1) {
		features[row[1]] = row[2]
	}
	return features
}

// splitBuild is the first build with separate features for container networking.
const splitBuild = 26100

func judgeFeatures(e, _ *Features) (Verdict, string) {
	var states []string
	for _, name := range slices.Sorted(maps.Keys(e.Features)) {
		states = append(states, name+" "+e.Features[name])
	}
	answer := fmt.Sprintf("build %d: %s; hns %t, vfpext %t", e.Build, strings.Join(states, ", "), e.Services["hns"], e.Services["vfpext"])
	hns, known := e.Features["Containers-HNS"]
	_, sdn := e.Features["Containers-SDN"]
	switch enabled := e.Features["Containers"] == "Enabled"; {
	case len(e.Features) == 0:
		return unknownVerdict("dism lists no such feature")
	case e.Build >= splitBuild && (!known || !sdn):
		return contradictedVerdict(answer)
	case e.Build >= splitBuild && enabled && hns != "Enabled" && e.Services["hns"],
		e.Build < splitBuild && enabled && !e.Services["hns"], hns == "Enabled" && !e.Services["hns"]:
		return contradictedVerdict(answer)
	case !enabled && hns != "Enabled":
		return unknownVerdict(answer + "; ask again once they are enabled")
	}
	return holdsVerdict(answer)
}

// Upload is the evidence of N12.
type Upload struct {
	Refused      []string `json:"refused"` // the first error of each file with a failed rename
	Files        int      `json:"files"`
	Milliseconds int64    `json:"milliseconds"` // until the slowest file could be renamed
	NotRenamed   int      `json:"left"`         // files that could not be renamed within 10 s
}

func judgeUpload(e, _ *Upload) (Verdict, string) {
	answer := fmt.Sprintf("%d of %d renames were refused at first, for %d ms at most %q", len(e.Refused), e.Files, e.Milliseconds, slices.Compact(slices.Sorted(slices.Values(e.Refused))))
	if e.NotRenamed > 0 || e.Milliseconds > 2000 {
		return contradictedVerdict(fmt.Sprintf("%s; %d were never possible", answer, e.NotRenamed))
	}
	return holdsVerdict(answer)
}

// Login is the evidence of A1.
type Login struct {
	SSH bool `json:"ssh"` // a program of the SSH server is among the parents of the process
	// Depth is the number of processes between the process and the service. Service is empty if no parent is a
	// service.
	Depth   int    `json:"depth"`
	Service string `json:"service,omitempty"`
}

func judgeLogin(e, _ *Login) (Verdict, string) {
	answer := fmt.Sprintf("service %q, over %d processes", e.Service, e.Depth)
	switch {
	case !e.SSH:
		return unknownVerdict("not asked over SSH; " + answer)
	case !strings.EqualFold(e.Service, "sshd"):
		return contradictedVerdict(answer)
	}
	return holdsVerdict(answer)
}

// Service is the evidence of A2.
type Service struct {
	There bool   `json:"there"`
	Start uint32 `json:"startType"` // 2 automatic, 3 manual, 4 disabled
	State uint32 `json:"state"`     // 1 stopped, 4 running
}

func judgeService(e, _ *Service) (Verdict, string) {
	answer := fmt.Sprintf("start type %d, state %d", e.Start, e.State)
	switch {
	case !e.There:
		return unknownVerdict("there is no service hns")
	case e.Start == 4:
		return contradictedVerdict(answer)
	}
	return holdsVerdict(answer)
}

// Access is the evidence of A4: owner and access list in SDDL.
type Access struct {
	SDDL string `json:"sddl"`
}

var owner = regexp.MustCompile(`^O:(S(?:-\d+)+|[A-Z]{2})`)

var domain = regexp.MustCompile(`S-1-5-21-\d+-\d+-\d+`)

// PlainSDDL removes the identifiers of the machine and its domain.
func PlainSDDL(sddl string) string { return domain.ReplaceAllString(sddl, "S-1-5-21-0-0-0") }

// trusted lists the trustees that may change anything: administrators, SYSTEM, the installer of Windows, and CO,
// the creator of an entry.
var trusted = []string{"BA", "SY", "CO", "S-1-5-32-544", "S-1-5-18", "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"}

var entry = regexp.MustCompile(`\((\w*);(\w*);(\w*);[^;)]*;[^;)]*;([^;)]+)[^)]*\)`)

// readOnly lists the SDDL rights that permit no changes: generic and file rights to read and execute, as words or
// bits.
var readOnly = []string{"FR", "FX", "FRFX", "GR", "GX", "GRGX", "GXGR", "0x1200a9", "0x120089", "0x1200a0"}

func judgeAccess(e, _ *Access) (Verdict, string) {
	if found := owner.FindStringSubmatch(e.SDDL); found == nil || !slices.Contains(trusted, found[1]) {
		return contradictedVerdict("its owner is neither administrators nor Windows: " + e.SDDL)
	}
	if !strings.Contains(e.SDDL, "D:") || strings.Contains(e.SDDL, "NO_ACCESS_CONTROL") {
		return contradictedVerdict("it has no access list: " + e.SDDL)
	}
	for _, found := range entry.FindAllStringSubmatch(e.SDDL, -1) {
		if kind, rights, account := found[1], found[3], found[4]; kind != "D" && !slices.Contains(trusted, account) && !slices.Contains(readOnly, rights) {
			return contradictedVerdict(fmt.Sprintf("%s has the rights %s in %s", account, rights, e.SDDL))
		}
	}
	return holdsVerdict("only administrators and Windows may write: " + e.SDDL)
}
