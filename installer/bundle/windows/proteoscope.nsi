; The installer for Windows, from what PyInstaller made there:
;
;     pyinstaller installer\bundle\proteoscope.spec --distpath OUT --workpath WORK
;     makensis /DVERSION=1.2.0 /DFOLDER=OUT\proteoscope /DOUTPUT=proteoscope-1.2.0-setup.exe installer\bundle\windows\proteoscope.nsi
;
; For the user alone, without an administrator. It was compiled with NSIS on Linux, and never run on Windows.
Unicode true
!include "MUI2.nsh"
!ifndef VERSION
  !error "give /DVERSION=..."
!endif
Name "Proteoscope ${VERSION}"
OutFile "${OUTPUT}"
RequestExecutionLevel user
InstallDir "$LOCALAPPDATA\Programs\Proteoscope"
InstallDirRegKey HKCU "Software\Proteoscope" "InstallDir"
SetCompressor /SOLID lzma

!insertmacro MUI_PAGE_WELCOME
!insertmacro MUI_PAGE_LICENSE "${LICENSE}"
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"

!macro Associate extension
  WriteRegStr HKCU "Software\Classes\.${extension}\OpenWithProgids" "Proteoscope.Spectra" ""
!macroend
!macro Forget extension
  DeleteRegValue HKCU "Software\Classes\.${extension}\OpenWithProgids" "Proteoscope.Spectra"
!macroend

Section "Proteoscope"
  ; What an older version had and this one has not would be found by Python.
  RMDir /r "$INSTDIR\_internal"
  SetOutPath "$INSTDIR"
  File /r "${FOLDER}/*"
  WriteUninstaller "$INSTDIR\uninstall.exe"
  CreateShortcut "$SMPROGRAMS\Proteoscope.lnk" "$INSTDIR\proteoscope.exe" "open"
  WriteRegStr HKCU "Software\Proteoscope" "InstallDir" "$INSTDIR"
  WriteRegStr HKCU "Software\Classes\Proteoscope.Spectra" "" "Mass spectra"
  WriteRegStr HKCU "Software\Classes\Proteoscope.Spectra\shell\open\command" "" '"$INSTDIR\proteoscope.exe" open "%1"'
  !insertmacro Associate "mzML"
  !insertmacro Associate "mzXML"
  !insertmacro Associate "mgf"
  WriteRegStr HKCU "Software\Microsoft\Windows\CurrentVersion\Uninstall\Proteoscope" "DisplayName" "Proteoscope"
  WriteRegStr HKCU "Software\Microsoft\Windows\CurrentVersion\Uninstall\Proteoscope" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "Software\Microsoft\Windows\CurrentVersion\Uninstall\Proteoscope" "UninstallString" '"$INSTDIR\uninstall.exe"'
SectionEnd

Section "Uninstall"
  RMDir /r "$INSTDIR\_internal"
  Delete "$INSTDIR\proteoscope.exe"
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR"
  Delete "$SMPROGRAMS\Proteoscope.lnk"
  !insertmacro Forget "mzML"
  !insertmacro Forget "mzXML"
  !insertmacro Forget "mgf"
  DeleteRegKey HKCU "Software\Classes\Proteoscope.Spectra"
  DeleteRegKey HKCU "Software\Microsoft\Windows\CurrentVersion\Uninstall\Proteoscope"
  DeleteRegKey HKCU "Software\Proteoscope"
SectionEnd
