import { runCasesOnMysql } from '../stores/mysql/conformance.js'

runCasesOnMysql('mariadb', 'MariaDB through mariadb', { part: 1, of: 2 })
