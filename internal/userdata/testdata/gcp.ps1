# windows-user-data 1
# user: Administrator
# public-key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPwR8Rz6xlBy/9Ow9z7Rsd/mN7N/NvVlDcHzGDFdCPgR
# ports: 22 10250
# end of header

# Lets the Windows Machine Config Operator log in to this machine with its key. Nothing here is secret. Each step looks before it changes
# anything, so that the script may run again, at each boot where the platform does so. What it did is in C:\Windows\Logs\windows-user-data.log.

$ErrorActionPreference = 'Stop'
$User = 'Administrator'
$PublicKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPwR8Rz6xlBy/9Ow9z7Rsd/mN7N/NvVlDcHzGDFdCPgR'
$Log = Join-Path $env:SystemRoot 'Logs\windows-user-data.log'
$Failed = New-Object 'Collections.Generic.List[string]'

function Write-Log([string] $Message) {
    $line = [DateTime]::UtcNow.ToString('yyyy-MM-ddTHH:mm:ssZ', [Globalization.CultureInfo]::InvariantCulture) + ' ' + $Message
    Write-Host $line
    Add-Content -LiteralPath $Log -Value $line -ErrorAction SilentlyContinue
}

# Tries a step until it works or its time is over. Later steps are done in any case: each of them may be all that is missing. A cmdlet that
# is a function of a module does not see the preference above, and needs -ErrorAction Stop to fail.
function Invoke-Step([string] $Name, [int] $Minutes, [scriptblock] $Step) {
    $watch = [Diagnostics.Stopwatch]::StartNew()
    while ($true) {
        try {
            & $Step | Out-Null
            Write-Log "done: $Name"
            return
        } catch {
            Write-Log "failed: ${Name}: $($_.Exception.Message)"
        }
        if ($watch.Elapsed.TotalMinutes -ge $Minutes) {
            $Failed.Add($Name)
            return
        }
        Start-Sleep -Seconds 15
    }
}

Write-Log "begin, as $([Security.Principal.WindowsIdentity]::GetCurrent().Name)"

# Some images have the account disabled: it could not log in with a key either. It must have a password then, which nobody needs to know.
Invoke-Step "account $User is enabled" 1 {
    if (-not (Get-LocalUser -Name $User).Enabled) {
        $random = New-Object byte[] 48
        [Security.Cryptography.RandomNumberGenerator]::Create().GetBytes($random)
        $password = ConvertTo-SecureString -String ([Convert]::ToBase64String($random) + 'aA1!') -AsPlainText -Force
        Set-LocalUser -Name $User -Password $password
        Enable-LocalUser -Name $User
    }
}

# Windows fetches the capability from Windows Update, which fails for a while after the first boot.
Invoke-Step 'the OpenSSH server is installed' 20 {
    if (-not (Get-Service -Name sshd -ErrorAction SilentlyContinue)) {
        Add-WindowsCapability -Online -Name 'OpenSSH.Server~~~~0.0.1.0'
        Get-Service -Name sshd
    }
}

# The first start makes the folder of the next step, with the right access, and the host keys.
Invoke-Step 'the service sshd starts at boot, and runs' 2 {
    Set-Service -Name sshd -StartupType Automatic
    Start-Service -Name sshd
}

# The operator logs in with its key, and nobody needs to try passwords. Of the values that sshd finds, the first counts, so it comes first,
# before files that are included too. Others, commented or in a section for some users, become the same. sshd reads the file when it starts:
# a second file marks a restart that is due, from before the change until sshd has restarted, so that a failed restart is not forgotten. The
# start time of sshd would not do: the clock of a new machine may still change.
Invoke-Step 'sshd takes no passwords' 1 {
    $file = Join-Path $env:ProgramData 'ssh\sshd_config'
    $due = Join-Path $env:ProgramData 'ssh\sshd_config.restart'
    $line = 'PasswordAuthentication no'
    $text = [IO.File]::ReadAllText($file)
    $changed = [regex]::Replace($text, '(?im)^[ \t]*#?[ \t]*PasswordAuthentication\b[^\r\n]*', $line)
    if (-not $changed.StartsWith($line, [StringComparison]::Ordinal)) { $changed = "$line`r`n$changed" }
    if ($changed -cne $text) {
        [IO.File]::WriteAllText($due, '')
        [IO.File]::WriteAllText($file, $changed)
    }
    if ([IO.File]::Exists($due)) {
        Restart-Service -Name sshd
        [IO.File]::Delete($due)
    }
}

# For members of the group Administrators, sshd reads this file and not the one in their profile. It refuses a file that others may
# write. The groups are named by their identifiers, for their names differ by language. Other keys stay.
Invoke-Step 'the public key is authorized' 1 {
    $file = Join-Path $env:ProgramData 'ssh\administrators_authorized_keys'
    $text = ''
    if (Test-Path -LiteralPath $file) { $text = [IO.File]::ReadAllText($file) }
    $known = $text -split "`n" | ForEach-Object { $_.Trim() } | Where-Object { $_ -ceq $PublicKey -or $_.StartsWith("$PublicKey ", [StringComparison]::Ordinal) }
    if (-not $known) {
        if ($text -ne '' -and -not $text.EndsWith("`n")) { $PublicKey = "`r`n$PublicKey" }
        [IO.File]::AppendAllText($file, "$PublicKey`r`n")
    }
    $administrators = New-Object Security.Principal.SecurityIdentifier 'S-1-5-32-544'
    $system = New-Object Security.Principal.SecurityIdentifier 'S-1-5-18'
    $access = New-Object Security.AccessControl.FileSecurity
    $access.SetOwner($administrators)
    $access.SetAccessRuleProtection($true, $false)
    foreach ($group in $administrators, $system) {
        $access.AddAccessRule((New-Object Security.AccessControl.FileSystemAccessRule $group, 'FullControl', 'Allow'))
    }
    [IO.File]::SetAccessControl($file, $access)
}

# Windows Server 2025 brings this rule for private networks only. The network of a cloud counts as public.
Invoke-Step 'TCP port 22 is open' 1 {
    if (Get-NetFirewallRule -Name OpenSSH-Server-In-TCP -ErrorAction SilentlyContinue) {
        Set-NetFirewallRule -Name OpenSSH-Server-In-TCP -Enabled True -Action Allow -Profile Any -ErrorAction Stop
    } else {
        New-NetFirewallRule -Name OpenSSH-Server-In-TCP -DisplayName 'OpenSSH SSH Server (sshd)' -LocalPort 22 -Enabled True -Direction Inbound -Protocol TCP -Action Allow -Profile Any -ErrorAction Stop
    }
}

# For oc logs and oc exec. Without a profile it is a rule for all.
Invoke-Step 'TCP port 10250 is open' 1 {
    if (-not (Get-NetFirewallRule -DisplayName ContainerLogsPort -ErrorAction SilentlyContinue)) {
        New-NetFirewallRule -DisplayName ContainerLogsPort -LocalPort 10250 -Enabled True -Direction Inbound -Protocol TCP -Action Allow -EdgeTraversalPolicy Allow -ErrorAction Stop
    }
}

Invoke-Step 'sshd listens on TCP port 22' 1 {
    if (-not (Get-NetTCPConnection -State Listen -LocalPort 22 -ErrorAction SilentlyContinue)) {
        throw "nothing listens there; see Port and ListenAddress in $env:ProgramData\ssh\sshd_config"
    }
}

if ($Failed.Count -gt 0) {
    throw "This machine is not ready for the operator before these are mended, see ${Log}: $($Failed -join '; ')"
}
Write-Log 'the operator can log in'

