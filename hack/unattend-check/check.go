package main

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	namespace = "urn:schemas-microsoft-com:unattend"
	// placeholder is the password in the sample.
	placeholder = "MyPassword"
	// maxNameLength is the maximum length of a Windows computer name.
	maxNameLength = 15
)

// answers contains the relevant parts of an answer file.
type answers struct {
	XMLName  xml.Name `xml:"unattend"`
	Settings []struct {
		Pass       string `xml:"pass,attr"`
		Components []struct {
			ComputerName string   `xml:"ComputerName"`
			AutoLogon    []string `xml:"AutoLogon>Enabled"`
			Password     *struct {
				Value     string `xml:"Value"`
				PlainText string `xml:"PlainText"`
			} `xml:"UserAccounts>AdministratorPassword"`
		} `xml:"component"`
	} `xml:"settings"`
}

// checkAnswerFile returns the faults of an answer file, or nothing for a usable file. It never repeats the password.
//
func checkAnswerFile(data []byte) []string {
	if err := wellFormed(data); err != nil {
		return []string{fmt.Sprintf("it is not well-formed XML: %v", err)}
	}
	var file answers
	if err := xml.Unmarshal(data, &file); err != nil || file.XMLName.Space != namespace {
		return []string{fmt.Sprintf("it is not an answer file: its root must be <unattend xmlns=%q>", namespace)}
	}
	var problems, names []string
	password := false
	for _, settings := range file.Settings {
		for _, component := range settings.Components {
			if component.ComputerName != "" {
				names = append(names, component.ComputerName)
			}
			for _, enabled := range component.AutoLogon {
				if strings.TrimSpace(enabled) != "false" {
					problems = append(problems,
						"AutoLogon must be false: otherwise the administrator stays logged on at the console after each start")
				}
			}
			if p := component.Password; p != nil {
				password = true
				problems = append(problems, passwordProblems(p.Value)...)
			}
		}
	}
	for _, name := range names {
		problems = append(problems, nameProblems(name)...)
	}
	if len(names) == 0 {
		problems = append(problems, "it has no ComputerName")
	}
	if !password {
		problems = append(problems, "it has no AdministratorPassword: the administrator's password would be empty")
	}
	return problems
}

func nameProblems(name string) []string {
	if name == "*" {
		return nil // Windows generates a name, and the operator sets the Machine's name.
	}
	// Windows ignores the case, and so does the operator.
	if problems := validation.IsDNS1123Label(strings.ToLower(name)); len(problems) > 0 {
		return []string{fmt.Sprintf("ComputerName %q cannot be the name of a node: %s", name, strings.Join(problems, "; "))}
	}
	if len(name) > maxNameLength {
		return []string{fmt.Sprintf("ComputerName %q has %d characters; Windows accepts at most %d", name, len(name), maxNameLength)}
	}
	return nil
}

func passwordProblems(value string) []string {
	switch value {
	case "":
		return []string{"the administrator's password is empty"}
	case placeholder, encodePassword(placeholder):
		return []string{"the administrator's password is still the sample password"}
	}
	return nil
}

// encodePassword returns a password in the format that Windows' tools write if PlainText is false.
func encodePassword(password string) string {
	var data []byte
	for _, unit := range utf16.Encode([]rune(password + "AdministratorPassword")) {
		data = append(data, byte(unit), byte(unit>>8))
	}
	return base64.StdEncoding.EncodeToString(data)
}

func wellFormed(data []byte) error {
	decoder := xml.NewDecoder(bytes.NewReader(data))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
