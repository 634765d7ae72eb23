package main

import (
	"bytes"
	"encoding/xml"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/examples"
)

func readSample(t *testing.T) string {
	t.Helper()
	data, err := examples.Files.ReadFile("unattend.xml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

//
func TestCheck(t *testing.T) {
	// used is the sample with a valid password.
	used := strings.Replace(readSample(t), "<Value>MyPassword<", "<Value>vE7-long-and-own<", 1)
	for sentence, test := range map[string]struct {
		file string
		want []string
	}{
		"the sample with a password of its own": {used, nil},
		"the sample as it is":                   {readSample(t), []string{"still the sample password"}},
		"the sample's password, encoded": {strings.Replace(used, "vE7-long-and-own",
			"TQB5AFAAYQBzAHMAdwBvAHIAZABBAGQAbQBpAG4AaQBzAHQAcgBhAHQAbwByAFAAYQBzAHMAdwBvAHIAZAA=", 1),
			[]string{"still the sample password"}},
		"an empty password": {strings.Replace(used, "vE7-long-and-own", "", 1),
			[]string{"password is empty"}},
		"no password": {strings.NewReplacer("<AdministratorPassword>", "<Other>",
			"</AdministratorPassword>", "</Other>").Replace(used), []string{"no AdministratorPassword"}},
		"AutoLogon": {strings.Replace(used, "<Enabled>false<", "<Enabled>true<", 1),
			[]string{"AutoLogon must be false"}},
		"an invalid name": {strings.Replace(used, ">winhost<", ">win_host<", 1),
			[]string{`ComputerName "win_host" cannot be the name of a node`}},
		"a name that is too long": {strings.Replace(used, ">winhost<", ">windows-golden-image<", 1),
			[]string{"20 characters"}},
		"a name in capitals":           {strings.Replace(used, ">winhost<", ">WINHOST<", 1), nil},
		"a name that Windows makes up": {strings.Replace(used, ">winhost<", ">*<", 1), nil},
		"no name": {strings.Replace(used, "<ComputerName>winhost</ComputerName>", "", 1),
			[]string{"no ComputerName"}},
		"the tag that an older guide broke": {strings.Replace(used, ">true</SkipUserOOBE>", ">>true</SkipUserOOB>",
			1), []string{"not well-formed XML"}},
		"another kind of file": {"<a/>", []string{"not an answer file"}},
		"no XML":               {"unattend: yes", []string{"not an answer file"}},
		"everything at once": {strings.NewReplacer(">winhost<", ">win host<", "<Enabled>false<",
			"<Enabled>true<").Replace(readSample(t)), []string{"AutoLogon", "still the sample password", "ComputerName"}},
		"an AutoLogon that is neither true nor false": {strings.Replace(used, "<Enabled>false<", "<Enabled>no<", 1),
			[]string{"AutoLogon must be false"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := checkAnswerFile([]byte(test.file))
			if len(got) != len(test.want) {
				t.Fatalf("it says: %q", got)
			}
			for i, want := range test.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("it says: %q", got[i])
				}
				if strings.Contains(got[i], "MyPassword") || strings.Contains(got[i], "vE7") {
					t.Errorf("it repeats the password: %q", got[i])
				}
			}
		})
	}
}

//
func TestSample_HasValuesOfGuide(t *testing.T) {
	want := map[string][]string{
		"InputLocale": {"0409:00000409"}, "SystemLocale": {"en-US"}, "UILanguage": {"en-US"}, "UILanguageFallback": {"en-US"},
		"UserLocale":         {"en-US"},
		"SkipAutoActivation": {"true"}, "CEIPEnabled": {"0"}, "ComputerName": {"winhost"}, "Enabled": {"false"},
		"HideEULAPage": {"true"}, "HideLocalAccountScreen": {"true"}, "HideOEMRegistrationScreen": {"true"},
		"HideOnlineAccountScreens": {"true"},
		"HideWirelessSetupInOOBE":  {"true"}, "NetworkLocation": {"Work"}, "ProtectYourPC": {"1"},
		"SkipMachineOOBE":        {"true"},
		"SkipUserOOBE":           {"true"},
		"RegisteredOrganization": {"Organization"}, "RegisteredOwner": {"Owner"}, "DisableAutoDaylightTimeSet": {"false"},
		"TimeZone": {"Eastern Standard Time"}, "Value": {"MyPassword"}, "PlainText": {"true"},
		"component": {
			"specialize/Microsoft-Windows-International-Core", "specialize/Microsoft-Windows-Security-SPP-UX",
			"specialize/Microsoft-Windows-SQMApi",
			"specialize/Microsoft-Windows-Shell-Setup", "oobeSystem/Microsoft-Windows-Shell-Setup",
		},
	}
	got := map[string][]string{}
	decoder := xml.NewDecoder(strings.NewReader(readSample(t)))
	element, pass := "", ""
	for token, err := decoder.Token(); err == nil; token, err = decoder.Token() {
		switch token := token.(type) {
		case xml.StartElement:
			element = token.Name.Local
			attributes := map[string]string{}
			for _, attribute := range token.Attr {
				attributes[attribute.Name.Local] = attribute.Value
			}
			switch element {
			case "settings":
				pass = attributes["pass"]
			case "component":
				got[element] = append(got[element], pass+"/"+attributes["name"])
				if attributes["processorArchitecture"] != "amd64" || attributes["publicKeyToken"] != "31bf3856ad364e35" ||
					attributes["language"] != "neutral" || attributes["versionScope"] != "nonSxS" {
					t.Errorf("%v", attributes)
				}
			}
		case xml.CharData:
			if text := strings.TrimSpace(string(token)); text != "" && element != "" {
				got[element] = append(got[element], text)
			}
		}
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("it has %v", got)
	}
}

func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "unattend.xml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var stdout, stderr bytes.Buffer
	write(readSample(t))
	if code := run([]string{file}, &stdout, &stderr); code != 1 || !strings.Contains(stderr.String(),
		"still the sample password") {
		t.Errorf("%d: %s", code, &stderr)
	}
	write(strings.Replace(readSample(t), "<Value>MyPassword<", "<Value>own<", 1))
	if code := run([]string{file}, &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), "no problems found") {
		t.Errorf("%d: %s", code, &stdout)
	}
	if code := run(nil, &stdout, &stderr); code != 2 {
		t.Error(code)
	}
	if code := run([]string{file + ".none"}, &stdout, &stderr); code != 1 {
		t.Error(code)
	}
}
